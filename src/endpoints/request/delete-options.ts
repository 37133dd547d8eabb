import type { DecodedDeleteOptions, DeletePreconditions } from '../../api/delete-options.ts'
import { queryBoolean } from '../../api/query-boolean.ts'
import { invalid, type StatusError } from '../../api/status.ts'
import {
  type FieldError,
  invalidField,
  invalidText,
  unsupportedField,
} from '../../api/validation/field-error.ts'
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
  /** Deletes a stored value that cannot be decoded, and nothing else. Needs its own permission. */
  readonly onlyDamaged: boolean
}

const defaults: DeleteOptions = {
  isDryRun: false,
  preconditions: {},
  orphanDependents: undefined,
  onlyDamaged: false,
}

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
  const options = body ?? inQuery(query)
  const { preconditions = {}, orphanDependents, propagationPolicy, dryRun = [] } = options
  const dryRuns = [...dryRun, ...query.getAll('dryRun')]
  const errors = [
    ...propagationErrors(propagationPolicy, orphanDependents),
    ...dryRunErrors(dryRuns),
    ...damagedErrors(options),
  ]
  if (errors.length > 0) throw invalidOptions(errors)
  const onlyDamaged = options[ONLY_DAMAGED] ?? false
  return { isDryRun: dryRuns.length > 0, preconditions, orphanDependents, onlyDamaged }
}

/** The same for a collection, which has only events that can be decoded. */
export function readCollectionDeleteOptions(
  query: URLSearchParams,
  body: DecodedDeleteOptions | undefined,
): DeleteOptions {
  const options = readDeleteOptions(query, body)
  if (!options.onlyDamaged) return options
  const detail = 'is not allowed with DELETECOLLECTION, try again after removing the option'
  throw invalidOptions([invalidField(ONLY_DAMAGED, 'true', detail)])
}

const ONLY_DAMAGED = 'ignoreStoreReadErrorWithClusterBreakingPotential'

function invalidOptions(errors: readonly FieldError[]): StatusError {
  return invalid({ kind: 'DeleteOptions', group: 'meta.k8s.io', name: '' }, errors)
}

/** Reads all options in the query except `dryRun`. */
function inQuery(query: URLSearchParams): DecodedDeleteOptions {
  const uid = readText(query, 'uid') || undefined
  const resourceVersion = readText(query, 'resourceVersion') || undefined
  const isConditional = uid !== undefined || resourceVersion !== undefined
  return {
    gracePeriodSeconds: readInteger(query, 'gracePeriodSeconds'),
    orphanDependents: queryBoolean(query, 'orphanDependents'),
    propagationPolicy: query.get('propagationPolicy') ?? undefined,
    preconditions: isConditional ? { uid, resourceVersion } : undefined,
    [ONLY_DAMAGED]: queryBoolean(query, ONLY_DAMAGED),
  }
}

/** Options that depend on the content of the event, which a damaged value does not have. */
const OF_READABLE_EVENTS = [
  'propagationPolicy',
  'orphanDependents',
  'gracePeriodSeconds',
  'preconditions',
] as const

function damagedErrors(options: DecodedDeleteOptions): readonly FieldError[] {
  if (options[ONLY_DAMAGED] !== true) return []
  return OF_READABLE_EVENTS.filter((name) => options[name] !== undefined).map((name) =>
    invalidField(ONLY_DAMAGED, 'true', `cannot be set together with .${name}`),
  )
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
