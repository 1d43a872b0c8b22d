import { expect, test } from "vitest";
import { Metrics } from "./metrics.ts";

test("measurements have Prometheus' form: every line is a comment or a sample, buckets only grow", () => {
  const metrics = new Metrics([{ name: "things", help: "Things.", type: "gauge", read: () => 3 }]);
  metrics.count("GET", "/api/runs/:id", 200, 3);
  metrics.count("GET", "/api/runs/:id", 200, 300);
  metrics.count("GET", '/"odd\\"\n', 404, 99_999);
  const text = metrics.text();
  metrics.close();
  for (const line of text.trimEnd().split("\n"))
    expect(line).toMatch(/^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{([a-z]+="([^"\\\n]|\\["\\n])*",?)+\})? [-+0-9.e]+)$/);
  const labels = 'method="GET",route="/api/runs/:id",status="200"';
  const buckets = [...text.matchAll(/_bucket\{method="GET",route="\/api\/runs\/:id",status="200",le="([^"]+)"\} (\d+)/g)];
  expect(buckets.map(([, bound, count]) => [bound, Number(count)])).toEqual([
    ["0.001", 0],
    ["0.005", 1],
    ["0.025", 1],
    ["0.1", 1],
    ["0.5", 2],
    ["2.5", 2],
    ["10", 2],
    ["+Inf", 2],
  ]);
  expect(text).toContain(`guildhall_http_request_seconds_count{${labels}} 2\n`);
  expect(text).toContain(`guildhall_http_request_seconds_sum{${labels}} 0.303\n`);
  expect(text).toContain("# TYPE things gauge\nthings 3\n");
  expect(text).toMatch(/^process_resident_memory_bytes \d+$/m);
});
