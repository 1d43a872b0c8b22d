import { monitorEventLoopDelay } from "node:perf_hooks";

/** Upper bounds in seconds. */
const BUCKETS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10] as const;
const LOOP_RESOLUTION_MS = 20;

interface Series {
  readonly labels: string;
  readonly buckets: number[];
  count: number;
  sum: number;
}

/** Something that is counted elsewhere and read when somebody looks: one number, or one for each of several things. */
export interface Gauge {
  readonly name: string;
  readonly help: string;
  readonly type: "gauge" | "counter";
  read(): number | readonly Sample[];
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/**
 * What happened here since the start, in Prometheus' text form. Routes are counted by their declared path, so that nobody can make up
 * series by calling made-up paths.
 */
export class Metrics {
  readonly #requests = new Map<string, Series>();
  readonly #loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  readonly #gauges: readonly Gauge[];

  constructor(gauges: readonly Gauge[]) {
    this.#gauges = [...processGauges(), ...gauges];
    this.#loop.enable();
  }

  count(method: string, route: string, status: number, ms: number): void {
    const labels = `method="${escaped(method)}",route="${escaped(route)}",status="${status}"`;
    let series = this.#requests.get(labels);
    if (!series) {
      series = { labels, buckets: BUCKETS.map(() => 0), count: 0, sum: 0 };
      this.#requests.set(labels, series);
    }
    const seconds = ms / 1_000;
    series.count++;
    series.sum += seconds;
    for (const [index, bound] of BUCKETS.entries()) if (seconds <= bound) series.buckets[index] = (series.buckets[index] ?? 0) + 1;
  }

  /** `looked`: what was found besides, just now. */
  text(looked: readonly Gauge[] = []): string {
    const lines: string[] = [];
    const head = (name: string, type: string, help: string): void => void lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
    head("guildhall_http_request_seconds", "histogram", "Time until the answer, by route and status.");
    for (const { labels, buckets, count, sum } of this.#requests.values()) {
      for (const [index, bound] of BUCKETS.entries())
        lines.push(`guildhall_http_request_seconds_bucket{${labels},le="${bound}"} ${buckets[index]}`);
      lines.push(`guildhall_http_request_seconds_bucket{${labels},le="+Inf"} ${count}`);
      lines.push(`guildhall_http_request_seconds_sum{${labels}} ${sum}`, `guildhall_http_request_seconds_count{${labels}} ${count}`);
    }
    head("nodejs_eventloop_lag_seconds", "summary", "How late timers were, since the last look.");
    for (const quantile of [0.5, 0.99])
      lines.push(`nodejs_eventloop_lag_seconds{quantile="${quantile}"} ${this.#lag(this.#loop.percentile(quantile * 100))}`);
    lines.push(`nodejs_eventloop_lag_seconds{quantile="1"} ${this.#lag(this.#loop.max)}`);
    this.#loop.reset();
    for (const { name, help, type, read } of [...this.#gauges, ...looked]) {
      head(name, type, help);
      const found = read();
      if (typeof found === "number") lines.push(`${name} ${found}`);
      else for (const { labels, value } of found) lines.push(`${name}{${labelled(labels)}} ${value}`);
    }
    return `${lines.join("\n")}\n`;
  }

  /** The timer itself is part of what is measured. */
  #lag(nanoseconds: number): number {
    return Math.max(0, Number.isFinite(nanoseconds) ? nanoseconds / 1e9 - LOOP_RESOLUTION_MS / 1_000 : 0);
  }

  close(): void {
    this.#loop.disable();
  }
}

function processGauges(): Gauge[] {
  const cpu = (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  };
  const started = Date.now() / 1_000 - process.uptime();
  return [
    { name: "process_cpu_seconds_total", help: "Processor time used.", type: "counter", read: cpu },
    { name: "process_resident_memory_bytes", help: "Memory in use.", type: "gauge", read: () => process.memoryUsage.rss() },
    { name: "process_start_time_seconds", help: "When the process began.", type: "gauge", read: () => started },
    { name: "nodejs_heap_size_used_bytes", help: "JavaScript's share of it.", type: "gauge", read: () => process.memoryUsage().heapUsed },
  ];
}

function labelled(labels: Sample["labels"]): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(",");
}

function escaped(text: string): string {
  return text.replace(/[\\"\n]/g, (character) => (character === "\n" ? "\\n" : `\\${character}`));
}
