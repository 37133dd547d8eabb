import { type FieldError, forbiddenField, unsupportedField } from '../api/field-error.ts'
import {
  type FieldNames,
  type FieldRequirement,
  parseFieldSelector,
} from '../api/field-selector.ts'
import { type LabelSelector, parseLabelSelector } from '../api/label-selector.ts'
import { badRequest, invalid } from '../api/status.ts'
import { goQuote } from '../lib/go-quote.ts'
import { shown } from '../lib/shown.ts'
import type { ListRequest, VersionMatch } from '../registry/list-position.ts'
import { readBoolean, readInteger, readText } from './query-values.ts'

/** What a list, a watch or a collection delete is about, checked as far as a query alone can be. */
export interface ListOptions extends ListRequest {
  readonly labelSelector: LabelSelector
  readonly fieldSelector: readonly FieldRequirement[]
  /** What both were made of. */
  readonly selectorTexts: readonly string[]
  readonly isWatch: boolean
  /** Of a watch: whether what is there already comes first, and its end is told. */
  readonly sendInitialEvents: boolean | undefined
  readonly allowWatchBookmarks: boolean
  /** Of a watch. Undefined when that is for us to say; less than 0 when it is over already. */
  readonly timeoutSeconds: number | undefined
}

/** What the path of the request says already. */
export interface ListPath {
  /** It is a watch whatever the query says: `/watch/…`. */
  readonly isWatch: boolean
  /** It is about this event alone. */
  readonly name?: string | undefined
  /** How its group version names the fields; as events.k8s.io does unless told. */
  readonly fieldNames?: FieldNames | undefined
}

/** Throws a 400 for what cannot be read and a 422 for what does not go together. */
export function readListOptions(query: URLSearchParams, path: ListPath): ListOptions {
  const timeoutSeconds = readInteger(query, 'timeoutSeconds')
  const limit = readInteger(query, 'limit') ?? 0
  const selectorTexts = [
    readText(query, 'labelSelector'),
    readText(query, 'fieldSelector'),
  ] as const
  const labelSelector = parseLabelSelector(selectorTexts[0])
  const fieldSelector = parseFieldSelector(selectorTexts[1], path.fieldNames)
  const state = readState(query)
  return {
    resourceVersion: state.resourceVersion,
    match: checkedMatch(state),
    continueToken: state.continueToken,
    limit: Math.max(limit, 0),
    labelSelector,
    fieldSelector: withNameOfPath(fieldSelector, path.name),
    selectorTexts: [...selectorTexts, path.name ?? ''],
    isWatch: path.isWatch || state.isWatch,
    sendInitialEvents: state.sendInitialEvents,
    allowWatchBookmarks: readBoolean(query, 'allowWatchBookmarks') === true,
    timeoutSeconds: timeoutSeconds === 0 ? undefined : timeoutSeconds,
  }
}

/** Whether a list is to go on as a watch. */
export function wantsWatch(query: URLSearchParams): boolean {
  return readBoolean(query, 'watch') === true
}

/** Which state is asked for, in the options that depend on each other. */
interface AskedState {
  /** By the query: on a path that is a watch anyway, the options of a list are expected. */
  readonly isWatch: boolean
  readonly resourceVersion: string
  readonly match: string
  readonly continueToken: string
  readonly sendInitialEvents: boolean | undefined
}

function readState(query: URLSearchParams): AskedState {
  const asked: AskedState = {
    isWatch: wantsWatch(query),
    resourceVersion: readText(query, 'resourceVersion'),
    match: readText(query, 'resourceVersionMatch'),
    continueToken: readText(query, 'continue'),
    sendInitialEvents: readBoolean(query, 'sendInitialEvents'),
  }
  const isFromNow = asked.resourceVersion === '' || asked.resourceVersion === '0'
  const isPlain = asked.match === '' && asked.sendInitialEvents === undefined
  if (!asked.isWatch || !isFromNow || !isPlain) return asked
  return { ...asked, match: 'NotOlderThan', sendInitialEvents: true }
}

function checkedMatch(state: AskedState): VersionMatch {
  const errors = state.isWatch ? watchErrors(state) : listErrors(state)
  if (errors.length > 0) {
    throw invalid({ kind: 'ListOptions', group: 'meta.k8s.io', name: '' }, errors)
  }
  return state.match as VersionMatch
}

function listErrors(state: AskedState): readonly FieldError[] {
  const { match, resourceVersion } = state
  const errors: FieldError[] = []
  if (match !== '') {
    if (resourceVersion === '') {
      errors.push(
        matchForbidden('resourceVersionMatch is forbidden unless resourceVersion is provided'),
      )
    }
    if (state.continueToken !== '') errors.push(matchForbidden(withContinue))
    if (match !== 'Exact' && match !== 'NotOlderThan') {
      errors.push(matchUnsupported(match, ['Exact', 'NotOlderThan', '']))
    }
    if (match === 'Exact' && resourceVersion === '0') {
      errors.push(
        matchForbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
      )
    }
  }
  if (state.sendInitialEvents !== undefined) {
    errors.push(forbiddenField('sendInitialEvents', 'sendInitialEvents is forbidden for list'))
  }
  return errors
}

function watchErrors(state: AskedState): readonly FieldError[] {
  const { match, sendInitialEvents } = state
  const errors: FieldError[] = []
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    errors.push(
      matchForbidden('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'),
    )
  }
  if (match === '') return errors
  if (sendInitialEvents === undefined) {
    errors.push(
      matchForbidden(
        'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
      ),
    )
  }
  if (match !== 'NotOlderThan') errors.push(matchUnsupported(match, ['NotOlderThan']))
  if (state.continueToken !== '') errors.push(matchForbidden(withContinue))
  return errors
}

const withContinue = 'resourceVersionMatch is forbidden when continue is provided'

function matchForbidden(detail: string): FieldError {
  return forbiddenField('resourceVersionMatch', detail)
}

function matchUnsupported(match: string, supported: readonly string[]): FieldError {
  return unsupportedField('resourceVersionMatch', goQuote(shown(match)), supported)
}

/** A selector may repeat the name in the path, and then ask for more; it may not leave it out. */
function withNameOfPath(
  fields: readonly FieldRequirement[],
  name: string | undefined,
): readonly FieldRequirement[] {
  if (name === undefined) return fields
  if (fields.length === 0) return [{ field: 'metadata.name', operator: '=', value: name }]
  const named = fields.find(({ field, operator }) => field === 'metadata.name' && operator === '=')
  if (named?.value === name) return fields
  throw badRequest("fieldSelector metadata.name doesn't match requested name")
}
