import { markdownTable } from '../markdown-table.ts'
import { type DescribedMetric, metricTopics } from './catalogue.ts'
import { stabilityOf } from './stability.ts'

/** docs/reference/metrics.md */
export function metricsPage(): string {
  const lines = [
    '# Metrics',
    '',
    '<!-- Made by tools/gen-docs.ts from the definitions in src/server/metrics; edit those, then run it. -->',
    '',
    "Metrics are served in Prometheus' text format to callers on this host, and to users who may `get` the path:",
    '[how to scrape them](../how-to/monitor.md). Every number is per replica, and every counter counts since its',
    'start.',
    '',
    '**stable**, **beta** and **alpha** metrics are those of Kubernetes 1.37, at the level that Kubernetes gives',
    'them, or stable ones of Prometheus (`process_*`). The others are our **own** and those of the Node library.',
    '[Versions](../explanation/versions.md#what-is-stable) says how long each stays. A histogram has the series',
    '`_bucket` (with the label `le`), `_sum` and `_count`.',
  ]
  for (const { title, path, note, metrics } of metricTopics()) {
    lines.push('', `## ${title}`, '')
    const place = `At \`${path}\`.`
    lines.push(note === '' ? place : `${place} ${note}`, '')
    lines.push(
      ...markdownTable(['metric', 'type', 'labels', 'stability', 'meaning'], metrics.map(cells)),
    )
  }
  return `${lines.join('\n')}\n`
}

function cells(metric: DescribedMetric): readonly string[] {
  return [
    `\`${metric.name}\``,
    metric.type,
    metric.labels.map((label) => `\`${label}\``).join(', '),
    stabilityOf(metric.name),
    metric.help,
  ]
}
