/** Conflicts: fields of other owners that an apply would change. */
import { type StatusCause, StatusError } from '../../api/status.ts'
import { goQuote } from '../../lib/go/go-quote.ts'
import { difference, type FieldSet, intersection, shownPaths } from './field-set.ts'
import { type Owner, type Owners, shownFields } from './managed-fields.ts'
import type { Changes } from './structured-diff.ts'

export interface Conflict {
  readonly owner: Owner
  readonly fields: FieldSet
}

/** All conflicts are counted, and the first ones are named. */
const NAMED_MAX = 1000

/** Sorted by manager. `except` is the applier. Fields with equal values do not conflict. */
export function conflictsOf(owners: Owners, { set }: Changes, except: string): readonly Conflict[] {
  return [...owners]
    .filter(([id]) => id !== except)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, owner]) => ({ owner, fields: intersection(owner.fields, set) }))
    .filter(({ fields }) => fields.size > 0)
}

/** Throws a 409 that names the conflicts about fields that are not `allowed`. */
export function checkConflicts(conflicts: readonly Conflict[], allowed: FieldSet): void {
  const named: string[] = []
  const causes: StatusCause[] = []
  let count = 0
  let first = ''
  for (const { owner, fields } of conflicts) {
    const left = difference(fields, allowed)
    if (left.size === 0) continue
    const message = `conflict with ${managerText(owner)}`
    named.push(`conflicts with ${managerText(owner)}:`)
    for (const field of shownPaths(shownFields(owner, left))) {
      if (count === 0) first = `${message}: ${field}`
      if (++count > NAMED_MAX) continue
      named.push(`- ${field}`)
      causes.push({ reason: 'FieldManagerConflict', message, field })
    }
  }
  if (count === 0) return
  const what = count === 1 ? `1 conflict: ${first}` : `${count} conflicts: ${named.join('\n')}`
  throw new StatusError('Conflict', `Apply failed with ${what}`, { details: { causes } })
}

function managerText({ manager, operation, apiVersion, subresource }: Owner): string {
  const part = subresource === '' ? '' : ` with subresource ${goQuote(subresource)}`
  const version = operation === 'Update' ? ` using ${apiVersion}` : ''
  return `${goQuote(manager)}${part}${version}`
}
