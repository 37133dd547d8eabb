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
    '**Stable** metrics have the names and labels of Kubernetes and Prometheus, and change only with them. **Alpha**',
    'metrics are our own and those of the Node library: the changelog names one as deprecated before it is renamed or',
    'removed ([what is promised](../explanation/versions.md#what-is-stable)). A histogram has the series `_bucket`',
    '(with the label `le`), `_sum` and `_count`.',
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
