/** Occurrences by the hour, which are written beside each file: a thousandth of its size. */
import type { SelectableField } from '../../api/selectors/field-selector.ts'
import type { Requires } from '../../storage/requires.ts'
import type { GroupField } from '../../storage/summary.ts'
import type { InputFile } from '../engine/protocol.ts'
import { parquetSql } from './parquet-source.ts'
import type { SqlValues } from './sql-values.ts'

export const HOUR_MS = 3_600_000

const SELECTED: ReadonlySet<SelectableField> = new Set<SelectableField>([
  'metadata.namespace',
  'type',
  'reason',
  'regarding.kind',
  'controller',
])

const GROUPED: ReadonlySet<GroupField> = new Set<GroupField>([
  'cluster',
  'namespace',
  'type',
  'reason',
  'kind',
  'controller',
])

export interface RollupQuestion {
  /** All times that the question names. */
  readonly times: readonly number[]
  readonly groupBy: readonly GroupField[]
  readonly requires: Requires | undefined
}

/** Whether rollups have what it takes to answer. */
export function areInRollups({ times, groupBy, requires }: RollupQuestion): boolean {
  return (
    times.every((ms) => ms % HOUR_MS === 0) &&
    groupBy.every((field) => GROUPED.has(field)) &&
    (requires === undefined || isSelected(requires))
  )
}

function isSelected(requires: Requires): boolean {
  const {
    isAll,
    isOfFields,
    values = [],
    fields = [],
    namespaces: _,
    fragments: __,
    ...others
  } = requires
  return (
    (isAll === true || isOfFields === true) &&
    Object.values(others).every((one) => one === undefined) &&
    [...values, ...fields].every(({ field }) => SELECTED.has(field))
  )
}

/** The rollups of files, with the names of columns that events have. */
export function rollupSql(files: readonly InputFile[], values: SqlValues): string {
  const rows = parquetSql(files, values, 'rollupPath')
  return `(SELECT *, kind AS regarding_kind, file_index FROM ${rows})`
}
