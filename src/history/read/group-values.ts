/** The values that rows are grouped by, in SQL and as memory shows them. */
import { DuckDBListValue, type DuckDBValue } from '@duckdb/node-api'
import { patternId } from '../../incidents/pattern.ts'
import { shortenedStart, shortMax } from '../../lib/text/shortened.ts'
import type { GroupField } from '../../storage/summary.ts'

/** How rows are grouped, and how the text of each field is made of the keys of a group. */
export interface GroupKeys {
  /** Expressions of the columns of a file. The grouped relation has them as `key_0`, `key_1` and so on. */
  readonly keys: readonly string[]
  /** Expressions of those, which `textsOf` makes texts of. */
  readonly shown: readonly string[]
  textsOf(shown: readonly DuckDBValue[]): readonly string[]
}

interface FieldSql {
  readonly keys: readonly string[]
  readonly text: (keys: readonly DuckDBValue[]) => string
}

/** `cluster`: SQL of the cluster of a row. */
export function groupKeys(groupBy: readonly GroupField[], cluster: string): GroupKeys {
  const fields = groupBy.map((field) => fieldSql(field, cluster))
  const keys = fields.flatMap((field) => field.keys)
  return {
    keys,
    shown: keys.map((sql, index) => (sql === PATTERN ? `key_${index}` : shownSql(`key_${index}`))),
    textsOf: (shown) => {
      let at = 0
      return fields.map((field) => {
        const from = at
        at += field.keys.length
        return field.text(shown.slice(from, at))
      })
    },
  }
}

const PATTERN = 'pattern'

function fieldSql(field: GroupField, cluster: string): FieldSql {
  switch (field) {
    case 'cluster':
      return { keys: [cluster], text: firstText }
    case 'kind':
      return { keys: ['regarding_kind'], text: firstText }
    case 'object':
      // Objects of two clusters differ, even if their names do not.
      return {
        keys: ['regarding_kind', 'regarding_namespace', 'regarding_name', cluster],
        text: objectText,
      }
    case 'workload':
      return {
        keys: ['workload_kind', 'workload_name'],
        text: (keys) => keys.map(shownText).join('/'),
      }
    case 'pattern':
      return { keys: [PATTERN], text: ([pattern]) => patternId(Number(pattern)) }
    default:
      return { keys: [field], text: firstText }
  }
}

function firstText([key]: readonly DuckDBValue[]): string {
  return shownText(key)
}

function objectText(keys: readonly DuckDBValue[]): string {
  const [kind = '', namespace = '', name = ''] = keys.map(shownText)
  return namespace === '' ? `${kind}/${name}` : `${kind}/${namespace}/${name}`
}

/** A text may be as long as an event: only its start leaves DuckDB, and its digest if there is more. */
function shownSql(key: string): string {
  return `[left(${key}, ${shortMax + 1}), if(strlen(${key}) > ${shortMax}, sha256(${key}), '')]`
}

function shownText(shown: DuckDBValue | undefined): string {
  const [start, sha256] = shown instanceof DuckDBListValue ? shown.items : []
  return shortenedStart(String(start ?? ''), Buffer.from(String(sha256 ?? ''), 'hex'))
}
