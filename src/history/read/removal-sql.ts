import type { RemovalFilter, Where } from '../engine/merge.ts'
import { rowFilter } from './requires-sql.ts'
import { SqlValues } from './sql-values.ts'

/** The rows that go: of the first removal whose requirements a row has, if it was seen before its time. */
export const removalFilter: RemovalFilter = (removals): Where => {
  const values = new SqlValues()
  const cases = removals.map(({ requires, seenBeforeMs }) => {
    // A necessary condition alone would remove too much.
    const all = { ...requires, isAll: true }
    const { branches, isExact } = rowFilter({ requires: all, namespace: undefined }, values)
    if (!isExact) throw new RangeError('the requirements of a removal cannot be translated')
    const matches = branches.map((branch) => `(${branch})`).join(' OR ')
    return `WHEN (${matches}) IS TRUE THEN last_seen < ${values.time(seenBeforeMs)}`
  })
  return { sql: `CASE ${cases.join(' ')} ELSE false END`, values }
}
