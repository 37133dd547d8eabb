import type { DecodedDeleteOptions, DeletePreconditions } from '../api/delete-options.ts'
import { type FieldError, invalidText, unsupportedField } from '../api/field-error.ts'
import { invalid } from '../api/status.ts'
import { goQuote } from '../lib/go-quote.ts'
import { shown } from '../lib/shown.ts'
import { dryRunErrors, readBoolean, readInteger, readText } from './query-values.ts'

/**
 * How an event is to be deleted. Periods of grace and ways of propagation are checked and then make
 * no difference: an event goes at once and owns nothing.
 */
export interface DeleteOptions {
  readonly isDryRun: boolean
  readonly preconditions: DeletePreconditions
  /** Sent or not, this changes nothing but the code of the answer for an event that stays. */
  readonly orphanDependents: boolean | undefined
}

const unsaid: DeleteOptions = { isDryRun: false, preconditions: {}, orphanDependents: undefined }

/**
 * The body has the word; without one the query has. A dry run is one wherever it is asked for: to
 * delete in earnest what was to be tried would be the worse mistake. Throws a 400 for what cannot be
 * read and a 422 for what is no good.
 */
export function readDeleteOptions(
  query: URLSearchParams,
  body: DecodedDeleteOptions | undefined,
): DeleteOptions {
  if (query.size === 0 && body === undefined) return unsaid
  const {
    preconditions = {},
    orphanDependents,
    propagationPolicy,
    dryRun = [],
  } = body ?? inQuery(query)
  const dryRuns = [...dryRun, ...query.getAll('dryRun')]
  const errors = [
    ...propagationErrors(propagationPolicy, orphanDependents),
    ...dryRunErrors(dryRuns),
  ]
  if (errors.length > 0) {
    throw invalid({ kind: 'DeleteOptions', group: 'meta.k8s.io', name: '' }, errors)
  }
  return { isDryRun: dryRuns.length > 0, preconditions, orphanDependents }
}

/** All but `dryRun`. */
function inQuery(query: URLSearchParams): DecodedDeleteOptions {
  return {
    gracePeriodSeconds: readInteger(query, 'gracePeriodSeconds'),
    orphanDependents: readBoolean(query, 'orphanDependents'),
    propagationPolicy: query.get('propagationPolicy') ?? undefined,
    preconditions: {
      uid: readText(query, 'uid') || undefined,
      resourceVersion: readText(query, 'resourceVersion') || undefined,
    },
  }
}

const policies = ['Foreground', 'Background', 'Orphan']

function propagationErrors(
  policy: string | undefined,
  orphanDependents: boolean | undefined,
): readonly FieldError[] {
  if (policy === undefined) return []
  const sent = shown(policy)
  const errors: FieldError[] = []
  if (orphanDependents !== undefined) {
    const detail = 'orphanDependents and deletionPropagation cannot be both set'
    errors.push(invalidText('propagationPolicy', sent, detail))
  }
  if (!policies.includes(policy)) {
    errors.push(unsupportedField('propagationPolicy', goQuote(sent), [...policies, 'nil']))
  }
  return errors
}
