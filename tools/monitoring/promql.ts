/**
 * Checks that an expression of PromQL uses only metrics and labels that exist. It reads words, not
 * grammar: whether the expression is valid is left to Prometheus itself, in the tests.
 */
import type { DescribedMetric } from './catalogue.ts'

/** A selector such as `up{job="tidings"}`. */
export interface Selector {
  readonly series: string
  /** The labels that it matches. */
  readonly labels: readonly string[]
  /** What is between its braces. */
  readonly matchers: string
}

/** What an expression names. */
export interface ReadExpression {
  readonly selectors: readonly Selector[]
  /** Labels of `by`, `on` and so on. */
  readonly grouping: readonly string[]
}

/** The labels of every series, by its name. */
export type SeriesLabels = ReadonlyMap<string, readonly string[]>

/** Labels that Prometheus adds to every series of a target. */
const TARGET_LABELS = ['job', 'instance']
const KEYWORDS = new Set(['and', 'or', 'unless', 'bool', 'offset', 'inf', 'nan'])
const GROUPING = new Set(['by', 'without', 'on', 'ignoring', 'group_left', 'group_right'])
/** The functions and aggregations that our expressions use. */
const FUNCTIONS = new Set([
  'abs',
  'absent',
  'changes',
  'clamp_max',
  'count',
  'histogram_quantile',
  'increase',
  'label_replace',
  'max',
  'max_over_time',
  'min',
  'rate',
  'sum',
  'time',
  'timestamp',
  'topk',
  'vector',
])
const WORD =
  /"(?:[^"\\]|\\.)*"|\[[^\]]*\]|\{(?:"(?:[^"\\]|\\.)*"|[^}"])*\}|[a-zA-Z_:][\w:]*|\d[\w.]*|\(|\)/g

/** The series that a scrape of these metrics gives. */
export function seriesOf(metrics: Iterable<DescribedMetric>): SeriesLabels {
  const series = new Map<string, readonly string[]>([['up', TARGET_LABELS]])
  for (const { name, type, labels } of metrics) {
    const all = [...labels, ...TARGET_LABELS]
    if (type === 'histogram') {
      series.set(`${name}_bucket`, [...all, 'le'])
      series.set(`${name}_sum`, all)
      series.set(`${name}_count`, all)
    } else {
      series.set(name, all)
    }
  }
  return series
}

export function readExpression(expression: string): ReadExpression {
  const words = [...expression.matchAll(WORD)].map(([word]) => word)
  const selectors: Selector[] = []
  const grouping: string[] = []
  for (let at = 0; at < words.length; at++) {
    if (GROUPING.has(words[at] ?? '')) {
      const labels = labelsBehind(words, at)
      grouping.push(...labels)
      // And the opening parenthesis; the closing one is no series.
      if (labels.length > 0) at += labels.length + 1
    } else if (isSeries(words, at)) {
      const [matchers = ''] = /^\{.*\}$/s.exec(words[at + 1] ?? '') ?? []
      selectors.push({ series: words[at] ?? '', labels: labelsIn(matchers), matchers })
    }
  }
  return { selectors, grouping }
}

/** One sentence for each word that is not known. */
export function mistakesIn(expression: string, known: SeriesLabels): readonly string[] {
  const { selectors, grouping } = readExpression(expression)
  const mistakes: string[] = []
  const grouped = new Set<string>()
  for (const { series, labels } of selectors) {
    const own = known.get(series)
    if (own === undefined) mistakes.push(`there is no series ${series}`)
    for (const label of own ?? []) grouped.add(label)
    for (const label of labels) {
      if (own?.includes(label) === false) mistakes.push(`${series} has no label ${label}`)
    }
  }
  for (const label of grouping) {
    if (!grouped.has(label)) mistakes.push(`no series of the expression has the label ${label}`)
  }
  return mistakes
}

/** The words in parentheses behind one such as `by`; `group_left` may have none. */
function labelsBehind(words: readonly string[], at: number): readonly string[] {
  return words[at + 1] === '(' ? words.slice(at + 1, words.indexOf(')', at)).slice(1) : []
}

function isSeries(words: readonly string[], at: number): boolean {
  const [word = '', next = ''] = words.slice(at)
  const isCall = FUNCTIONS.has(word) && (next === '(' || GROUPING.has(next))
  return /^[a-zA-Z_:]/.test(word) && !KEYWORDS.has(word) && !isCall
}

function labelsIn(matchers: string): readonly string[] {
  const names = matchers.replace(/"(?:[^"\\]|\\.)*"/g, '').matchAll(/(\w+)\s*[=!]/g)
  return [...names].map(([, name = '']) => name)
}
