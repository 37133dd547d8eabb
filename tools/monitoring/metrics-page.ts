import { markdownTable } from '../markdown-table.ts'
import { type DescribedMetric, isStable, metricTopics } from './catalogue.ts'

/** docs/reference/metrics.md */
export function metricsPage(): string {
  const lines = [
    '# Metrics',
    '',
    '<!-- Made by tools/gen-docs.ts from the definitions in src/server/metrics; edit those, then run it. -->',
    '',
    "In Prometheus' text format, for callers on this host, and for users with a role that allows `get` on the",
    'path: [how to scrape them](../how-to/monitor.md). Every number is of one replica, and every counter',
    'counts since its start.',
    '',
    'The names and labels of **stable** metrics stay until the next major version: they are those of Kubernetes',
    'and Prometheus, with their meaning. **Alpha** metrics may change in a minor release, which the changelog',
    'then says; our [alerts](../runbook/alerts.md) and the dashboard change with them. A histogram has the series',
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
    isStable(metric) ? 'stable' : 'alpha',
    metric.help,
  ]
}
