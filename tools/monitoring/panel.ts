/** What a panel of the dashboard is, without what Grafana needs to draw it. */

export interface Query {
  /** `{S}` and `{S,code="429"}` become a selector with the job and the replicas that are chosen. */
  readonly expr: string
  /** The name of a series, with labels as `{{verb}}`. */
  readonly legend: string
}

export interface Panel {
  readonly title: string
  /** What it shows, what is normal, and what to do if it is not. */
  readonly description: string
  /** A unit of Grafana, such as `s`, `bytes`, `percentunit`, `reqps`. */
  readonly unit: string
  readonly queries: readonly Query[]
  /** One large number in place of a curve. */
  readonly isNumber?: true
  /** A row for each series, with its labels. */
  readonly isTable?: true
  readonly isStacked?: true
  /** Values below 0 mean something. */
  readonly isSigned?: true
  /** Thresholds from which the panel turns yellow, then red. */
  readonly limits?: readonly [yellow: number, red: number]
}

export interface Row {
  readonly title: string
  readonly panels: readonly Panel[]
}

/** Requests for events that end, unlike watches. */
export const REQUESTS = 'resource="events",verb!="WATCH"'

/** One curve or number. */
export function one(expr: string, legend = '{{instance}}'): readonly Query[] {
  return [{ expr, legend }]
}

/** The rate of a counter, added up by labels. */
export function rateBy(labels: string, counter: string, matchers = ''): readonly Query[] {
  const legend = labels.split(', ').map((label) => `{{${label}}}`)
  return one(
    `sum by (${labels}) (rate(${counter}{S${matchers && `,${matchers}`}}[$__rate_interval]))`,
    legend.join(' '),
  )
}

/** A quantile of a histogram, by labels. */
export function quantile(
  share: number,
  { histogram, by, matchers = '' }: { histogram: string; by: string; matchers?: string },
): readonly Query[] {
  const buckets = `${histogram}_bucket{S${matchers && `,${matchers}`}}`
  return one(
    `histogram_quantile(${share}, sum by (le, ${by}) (rate(${buckets}[$__rate_interval])))`,
    `{{${by}}}`,
  )
}
