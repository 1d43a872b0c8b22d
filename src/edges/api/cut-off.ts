/** The same answer, whose stream ends when the signal aborts. `ended` is called once, however it ends. */
export function cutOff(response: Response, signal: AbortSignal, ended: () => void): Response {
  if (!response.body) {
    ended();
    return response;
  }
  const reader = response.body.getReader();
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const end = (): void => {
          void reader.cancel().catch(() => {});
          try {
            controller.close();
          } catch {
            // It has ended by itself.
          }
          ended();
        };
        if (signal.aborted) end();
        else signal.addEventListener("abort", end, { once: true });
      },
      async pull(controller) {
        const { done, value } = await reader.read();
        if (signal.aborted) return;
        if (!done) return controller.enqueue(value);
        controller.close();
        ended();
      },
      async cancel(reason) {
        ended();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { status: response.status, headers: response.headers });
}
