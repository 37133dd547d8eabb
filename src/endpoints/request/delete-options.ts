import type { DecodedDeleteOptions, DeletePreconditions } from '../../api/delete-options.ts'
import { queryBoolean } from '../../api/query-boolean.ts'
import { invalid } from '../../api/status.ts'
import { type FieldError, invalidText, unsupportedField } from '../../api/validation/field-error.ts'
import { goQuote } from '../../lib/go/go-quote.ts'
import { truncate } from '../../lib/text/truncate.ts'
import { dryRunErrors, readInteger, readText } from './query-values.ts'

/**
 * The grace period and the propagation policy are checked and then ignored: an event is deleted at
 * once and owns no other objects.
 */
export interface DeleteOptions {
  readonly isDryRun: boolean
  readonly preconditions: DeletePreconditions
  /** Changes only the status code of the response when finalizers prevent the delete. */
  readonly orphanDependents: boolean | undefined
}

const defaults: DeleteOptions = { isDryRun: false, preconditions: {}, orphanDependents: undefined }

/**
 * Reads the options from the body or, without one, from the query. `dryRun` counts in either place:
 * deleting an event that was meant as a dry run would be the worse mistake. Throws a 400 for
 * options that cannot be parsed and a 422 for invalid ones.
 */
export function readDeleteOptions(
  query: URLSearchParams,
  body: DecodedDeleteOptions | undefined,
): DeleteOptions {
  if (query.size === 0 && body === undefined) return defaults
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

/** Reads all options in the query except `dryRun`. */
function inQuery(query: URLSearchParams): DecodedDeleteOptions {
  return {
    gracePeriodSeconds: readInteger(query, 'gracePeriodSeconds'),
    orphanDependents: queryBoolean(query, 'orphanDependents'),
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
  const sent = truncate(policy)
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
