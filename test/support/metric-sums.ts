import type { Tidings } from './tidings.ts'

/** The values at `/metrics` of several replicas, added up by series. */
export class MetricSums {
  readonly #sums = new Map<string, number>()

  static async of(servers: readonly Tidings[]): Promise<MetricSums> {
    const texts = await Promise.all(
      servers.map(async (server) => (await server.ask('/metrics')).body),
    )
    return new MetricSums(texts)
  }

  private constructor(texts: readonly string[]) {
    for (const line of texts.join('\n').split('\n')) {
      const at = line.lastIndexOf(' ')
      if (line.startsWith('#') || at < 0) continue
      const series = line.slice(0, at)
      this.#sums.set(series, (this.#sums.get(series) ?? 0) + Number(line.slice(at + 1)))
    }
  }

  /** The sum of all series of this metric whose labels include these. */
  sum(metric: string, labels: Readonly<Record<string, string>> = {}): number {
    const wanted = Object.entries(labels).map(([name, value]) => `${name}="${value}"`)
    let sum = 0
    for (const [series, value] of this.#sums) {
      const isOfMetric = series === metric || series.startsWith(`${metric}{`)
      if (isOfMetric && wanted.every((label) => series.includes(label))) sum += value
    }
    return sum
  }
}
