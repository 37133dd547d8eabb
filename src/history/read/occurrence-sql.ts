/**
 * Occurrences in SQL. How a span is distributed over its time is what storage/occurrences.ts says, with
 * the same arithmetic: numbers of JavaScript are doubles.
 */
import type { TimeWindow } from '../../storage/summary.ts'
import type { SqlValues } from './sql-values.ts'

/** `span` is a struct as in the column of occurrences; `ms` an integer. As `countBefore`. */
export function countBeforeSql(span: string, ms: string): string {
  const [first, last] = [`epoch_ms(${span}.first)`, `epoch_ms(${span}.last)`]
  const steps = `if(${span}.is_open, ${span}.count, ${span}.count - 1)`
  const passed = `ceil((${ms} - ${first})::DOUBLE * ${steps}::DOUBLE / (${last} - ${first})::DOUBLE)`
  return `CASE WHEN ${ms} <= ${first} THEN 0 WHEN ${ms} > ${last} THEN ${span}.count
    ELSE least(${span}.count - 1, (${passed})::BIGINT - if(${span}.is_open, 1, 0)) END`
}

/** As `timeOf`. */
function timeOfSql(span: string, index: string): string {
  const [first, last] = [`epoch_ms(${span}.first)`, `epoch_ms(${span}.last)`]
  const steps = `if(${span}.is_open, ${span}.count, ${span}.count - 1)`
  const passed = `if(${span}.is_open, ${index} + 1, ${index})`
  const time = `floor(${first}::DOUBLE + (${last} - ${first})::DOUBLE * (${passed})::DOUBLE / ${steps}::DOUBLE)`
  return `if(${steps} = 0, ${first}, (${time})::BIGINT)`
}

/** A window whose bounds are placeholders of integers. */
export interface WindowSql {
  readonly since: string | undefined
  readonly until: string | undefined
}

export function windowSql({ sinceMs, untilMs }: TimeWindow, values: SqlValues): WindowSql {
  return {
    since: sinceMs === undefined ? undefined : values.integer(Math.ceil(sinceMs)),
    until: untilMs === undefined ? undefined : values.integer(Math.ceil(untilMs)),
  }
}

/** What the occurrences of a span within a window are; as `WindowCount` of memory. */
export interface WindowCountSql {
  readonly count: string
  /** NULL when there are none. */
  readonly lastMs: string
  readonly isEstimated: string
}

export function windowCountSql(span: string, { since, until }: WindowSql): WindowCountSql {
  const before = since === undefined ? '0' : `(${countBeforeSql(span, since)})`
  const end = until === undefined ? `${span}.count` : `(${countBeforeSql(span, until)})`
  const cuts = [since, until].flatMap((ms) =>
    ms === undefined
      ? []
      : [`(epoch_ms(${span}.first) < ${ms} AND ${ms} <= epoch_ms(${span}.last))`],
  )
  return {
    // A window may end before it begins.
    count: `greatest(0, ${end} - ${before})`,
    lastMs: `CASE WHEN ${end} > ${before} THEN ${timeOfSql(span, `(${end} - 1)`)} END`,
    isEstimated: cuts.length === 0 ? 'false' : `${span}.count > 1 AND (${cuts.join(' OR ')})`,
  }
}
