/** Recorded responses, changed in those deliberate differences that concern every response. */
import { isObject, type Json, type JsonObject, memberOf } from '../../../src/lib/json.ts'
import { inCallerNames, withAllowedTypes } from './caller-fields.ts'

/** Where the recorded server has these columns of a table of events. */
const MESSAGE = 6
const COUNT = 8
const COLUMNS = 10

/** `isCore`: whether the path is one of core/v1, whose field names the recorded server uses. */
export function inOurForm(answer: Json, isCore: boolean): Json {
  const shown = withCounts(answer)
  return isCore ? shown : inCallerNames(withAllowedTypes(shown))
}

/**
 * Tables of events with the column Count in every output, before the message. The argument is a
 * response, a frame of a watch, or all its frames.
 */
export function withCounts(answer: Json): Json {
  if (Array.isArray(answer)) return answer.map(withCounts)
  if (!isObject(answer)) return answer
  if (answer['kind'] === 'Table') return tableWithCounts(answer)
  const { object } = answer
  return isObject(object) ? { ...answer, object: withCounts(object) } : answer
}

/** Only the first table of a watch has column definitions. */
function tableWithCounts(table: JsonObject): JsonObject {
  const { columnDefinitions: columns, rows } = table
  if (Array.isArray(columns) && nameOf(columns[COUNT]) !== 'Count') return table
  return {
    ...table,
    ...(Array.isArray(columns) && {
      columnDefinitions: countFirst(columns).with(MESSAGE, shownAlways(columns[COUNT])),
    }),
    ...(Array.isArray(rows) && { rows: rows.map(rowWithCount) }),
  }
}

function rowWithCount(row: Json): Json {
  const cells = isObject(row) ? memberOf(row, 'cells') : undefined
  return isObject(row) && Array.isArray(cells) && cells.length === COLUMNS
    ? { ...row, cells: countFirst(cells) }
    : row
}

function countFirst(values: readonly Json[]): Json[] {
  const [count = null] = values.slice(COUNT, COUNT + 1)
  return values.toSpliced(COUNT, 1).toSpliced(MESSAGE, 0, count)
}

function shownAlways(column: Json = null): Json {
  return isObject(column) ? { ...column, priority: 0 } : column
}

function nameOf(column: Json = null): Json | undefined {
  return isObject(column) ? memberOf(column, 'name') : undefined
}
