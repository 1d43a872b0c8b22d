/** The same answer, whose stream ends when the signal aborts. `ended` is called once, however it ends. */
export function cutOff(response: Response, signal: AbortSignal, ended: () => void): Response {
  if (!response.body) {
    ended();
    return response;
  }
  const reader = response.body.getReader();
  let cut = (): void => {};
  let open = true;
  const over = (): void => {
    if (!open) return;
    open = false;
    // The signal lives on, and would keep in memory whatever listens to it.
    signal.removeEventListener("abort", cut);
    ended();
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        cut = (): void => {
          void reader.cancel().catch(() => {});
          try {
            controller.close();
          } catch {
            // It has ended by itself.
          }
          over();
        };
        if (signal.aborted) cut();
        else signal.addEventListener("abort", cut, { once: true });
      },
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!open) return;
          if (!done) return controller.enqueue(value);
          controller.close();
        } catch (error) {
          controller.error(error);
        }
        over();
      },
      async cancel(reason) {
        over();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { status: response.status, headers: response.headers });
}
