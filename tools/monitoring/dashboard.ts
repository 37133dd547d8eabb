/**
 * Makes monitoring/dashboard.json from the rows of panels. An expression with a metric or a label
 * that no replica has is an error, so no panel can ask for what does not exist.
 */
import { metricsByName } from './catalogue.ts'
import type { Panel, Query, Row } from './panel.ts'
import { mistakesIn, type SeriesLabels, seriesOf } from './promql.ts'
import { LIMITS } from './row-of-limits.ts'
import { LATENCY, OVERVIEW, TRAFFIC, WATCHES } from './rows-of-clients.ts'
import { MIRRORS, PROCESS } from './rows-of-process.ts'
import { ETCD, HISTORY, MEMORY, RETENTION } from './rows-of-storage.ts'

export const ROWS: readonly Row[] = [
  OVERVIEW,
  TRAFFIC,
  LATENCY,
  WATCHES,
  MEMORY,
  ETCD,
  RETENTION,
  HISTORY,
  MIRRORS,
  LIMITS,
  PROCESS,
]

const SELECTOR = 'job=~"$job",instance=~"$instance"'
const DATASOURCE = { type: 'prometheus', uid: '$datasource' }
const WIDTH = 24
const NUMBER_SIZE = { w: 4, h: 4 }
const CURVE_SIZE = { w: 8, h: 8 }

/** An expression as Grafana gets it; throws if it asks for what does not exist. */
export function expressionOf({ expr }: Query, known: SeriesLabels): string {
  const text = expr.replaceAll('{S', `{${SELECTOR}`)
  const mistakes = mistakesIn(text, known)
  if (mistakes.length > 0) throw new Error(`${expr}: ${mistakes.join(', ')}`)
  return text
}

export function dashboard(): string {
  const known = seriesOf(metricsByName().values())
  const panels: object[] = []
  let y = 0
  for (const row of ROWS) {
    panels.push(rowOf(row, { id: panels.length + 1, y }))
    y += 1
    let x = 0
    for (const panel of row.panels) {
      const size = panel.isNumber === true ? NUMBER_SIZE : CURVE_SIZE
      if (x + size.w > WIDTH) {
        x = 0
        y += size.h
      }
      const place = { ...size, x, y }
      panels.push({ id: panels.length + 1, gridPos: place, ...panelOf(panel, known) })
      x += size.w
    }
    y += row.panels[0]?.isNumber === true ? NUMBER_SIZE.h : CURVE_SIZE.h
  }
  return `${JSON.stringify({ ...FRAME, panels }, undefined, 2)}\n`
}

/** Everything but the panels. */
const FRAME = {
  uid: 'tidings',
  title: 'tidings',
  description: 'Made by npm run docs: edit tools/monitoring, not this file.',
  tags: ['tidings'],
  schemaVersion: 39,
  version: 1,
  editable: true,
  graphTooltip: 1,
  refresh: '30s',
  time: { from: 'now-3h', to: 'now' },
  timezone: 'browser',
  links: [],
  annotations: {
    list: [
      {
        name: 'Starts',
        datasource: DATASOURCE,
        enable: true,
        iconColor: 'blue',
        expr: `changes(process_start_time_seconds{${SELECTOR}}[2m]) > 0`,
        titleFormat: '{{instance}} started',
      },
    ],
  },
  templating: {
    list: [
      { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
      variable('job', 'Job', 'label_values(tidings_build_info, job)'),
      {
        ...variable(
          'instance',
          'Replica',
          'label_values(tidings_build_info{job=~"$job"}, instance)',
        ),
        multi: true,
        includeAll: true,
        allValue: '.*',
        current: { text: 'All', value: '$__all' },
      },
    ],
  },
}

function variable(name: string, label: string, query: string): object {
  return { name, label, type: 'query', datasource: DATASOURCE, query, refresh: 2, sort: 1 }
}

function rowOf({ title }: Row, { id, y }: { readonly id: number; readonly y: number }): object {
  return {
    id,
    type: 'row',
    title,
    collapsed: false,
    gridPos: { h: 1, w: WIDTH, x: 0, y },
    panels: [],
  }
}

function panelOf(panel: Panel, known: SeriesLabels): object {
  const { title, description, unit, queries } = panel
  const range = panel.isSigned === true ? {} : { min: 0 }
  return {
    type: typeOf(panel),
    title,
    description,
    datasource: DATASOURCE,
    targets: queries.map((query, at) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + at),
      datasource: DATASOURCE,
      expr: expressionOf(query, known),
      legendFormat: query.legend,
      ...(panel.isTable === true ? { format: 'table', instant: true } : { range: true }),
    })),
    fieldConfig: {
      defaults: { unit, ...range, thresholds: thresholdsOf(panel), custom: curveOf(panel) },
      overrides: [],
    },
    options: optionsOf(panel),
  }
}

function typeOf({ isNumber, isTable }: Panel): string {
  if (isTable === true) return 'table'
  return isNumber === true ? 'stat' : 'timeseries'
}

function thresholdsOf({ limits }: Panel): object {
  const green = { color: 'green', value: null }
  const [yellow, red] = limits ?? []
  const steps = limits === undefined ? [] : [at('yellow', yellow), at('red', red)]
  return { mode: 'absolute', steps: [green, ...steps] }
}

function at(color: string, value: number | undefined): object {
  return { color, value }
}

function curveOf({ isStacked, isNumber, isTable, limits }: Panel): object {
  if (isNumber === true || isTable === true) return {}
  return {
    drawStyle: 'line',
    lineWidth: 1,
    fillOpacity: isStacked === true ? 30 : 0,
    showPoints: 'never',
    stacking: { mode: isStacked === true ? 'normal' : 'none' },
    thresholdsStyle: { mode: limits === undefined ? 'off' : 'line' },
  }
}

function optionsOf({ isNumber, isTable }: Panel): object {
  if (isTable === true) return { showHeader: true }
  if (isNumber === true) {
    return { colorMode: 'value', graphMode: 'area', reduceOptions: { calcs: ['lastNotNull'] } }
  }
  return {
    legend: { displayMode: 'list', placement: 'bottom' },
    tooltip: { mode: 'multi', sort: 'desc' },
  }
}
