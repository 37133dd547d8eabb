/**
 * The rollup of rows of events: their occurrences by hour. How a span is distributed over its hours
 * is what `countBefore` of storage/occurrences.ts says, in SQL with the same arithmetic.
 */
import { ROLLUP_COLUMNS } from './columns.ts'

const HOUR_MS = 3_600_000
/**
 * A longer span is counted in this many hours, evenly chosen: a reporter that says that its event was
 * observed since 1970 must not make half a million rows of it.
 */
export const SPAN_HOURS_MAX = 168

const KEY = 'namespace, type, reason, kind, controller'

/** Selects the rollup of a relation with the columns of events. */
export function rollupOf(events: string): string {
  return `
    WITH
    rows AS (
      SELECT again, namespace, type, reason, regarding_kind AS kind, controller, occurrences,
        last_seen FROM ${events}
    ),
    spans AS (
      SELECT ${KEY}, epoch_ms(span.first) AS first, epoch_ms(span.last) AS last, span.count AS count,
        span.is_open AS is_open,
        ${hourOf('epoch_ms(span.first)')} AS from_ms, ${hourOf('epoch_ms(span.last)')} AS to_ms
      FROM (
        SELECT ${KEY}, occurrences[1] AS span FROM rows WHERE len(occurrences) = 1
        UNION ALL
        SELECT ${KEY}, unnest(occurrences) AS span FROM rows WHERE len(occurrences) > 1
      )
    ),
    parts AS (
      SELECT ${KEY}, from_ms AS hour, count FROM spans WHERE from_ms = to_ms
      UNION ALL
      SELECT ${KEY}, hour, ${countBefore('hour + step')} - ${countBefore('hour')} AS count
      FROM (
        SELECT *, unnest(range(from_ms, to_ms + 1, step)) AS hour
        FROM (
          SELECT *, ${HOUR_MS} * ceil(((to_ms - from_ms) // ${HOUR_MS} + 1) / ${SPAN_HOURS_MAX})::BIGINT AS step
          FROM spans WHERE from_ms < to_ms
        )
      )
    ),
    firsts AS (
      SELECT ${KEY}, ${hourOf('epoch_ms(coalesce(occurrences[1].first, last_seen))')} AS hour
      FROM rows WHERE NOT again
    ),
    counted AS (
      SELECT ${KEY}, hour, count, 0 AS events FROM parts WHERE count > 0
      UNION ALL
      SELECT ${KEY}, hour, 0 AS count, 1 AS events FROM firsts
    )
    SELECT ${ROLLUP_COLUMNS.map(({ name, type }) => `${VALUES[name] ?? name}::${type} AS ${name}`).join(', ')}
    FROM counted GROUP BY hour, ${KEY} ORDER BY hour, ${KEY}`
}

const VALUES: Readonly<Record<string, string>> = {
  hour: 'make_timestamp_ms(hour)',
  occurrences: 'sum(count)',
  events: 'sum(events)',
}

/** The start of the hour of a time in milliseconds, also before 1970. */
function hourOf(ms: string): string {
  return `(${ms} - ((${ms} % ${HOUR_MS}) + ${HOUR_MS}) % ${HOUR_MS})`
}

function countBefore(ms: string): string {
  const steps = `ceil((${ms} - first)::DOUBLE * (if(is_open, count, count - 1))::DOUBLE / (last - first)::DOUBLE)`
  return `(CASE WHEN ${ms} <= first THEN 0 WHEN ${ms} > last THEN count
    ELSE least(count - 1, (if(is_open, ${steps} - 1, ${steps}))::BIGINT) END)`
}
