import { Counter, Gauge, type Registry } from '@prometheus-io/client'

/** A metric without labels of its own, whose value is read at each scrape. */
export interface Figure<Source> {
  readonly name: string
  readonly help: string
  readonly isCounter?: true
  /** Undefined removes the series of a gauge. */
  readonly read: (source: Source) => number | undefined
}

export function registerFigure(
  figure: Pick<Figure<never>, 'name' | 'help' | 'isCounter'>,
  read: () => number | undefined,
  registry: Registry,
  labels: Readonly<Record<string, string>>,
): void {
  const { name, help } = figure
  const common = { name, help, labelNames: Object.keys(labels), registers: [registry] }
  if (figure.isCounter !== true) {
    new Gauge({
      ...common,
      collect() {
        const value = read()
        if (value === undefined) this.remove(labels)
        else this.set(labels, value)
      },
    })
    return
  }
  new Counter({
    ...common,
    collect() {
      this.reset()
      this.inc(labels, read() ?? 0)
    },
  })
}
