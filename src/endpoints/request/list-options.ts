import { queryBoolean } from '../../api/query-boolean.ts'
import { type FieldRequirement, requiredValue } from '../../api/selectors/field-selector.ts'
import { type LabelSelector, parseLabelSelector } from '../../api/selectors/label-selector.ts'
import { parseShardSelector, type ShardSelector } from '../../api/selectors/shard-selector.ts'
import { exactly } from '../../api/selectors/value-pattern.ts'
import { badRequest, invalid } from '../../api/status.ts'
import {
  type FieldError,
  forbiddenField,
  unsupportedField,
} from '../../api/validation/field-error.ts'
import { ALL_CLUSTERS } from '../../gate/attributes.ts'
import type { Place, ResourceTarget } from '../../gate/target.ts'
import { goQuote } from '../../lib/go/go-quote.ts'
import { truncate } from '../../lib/text/truncate.ts'
import type { ListRequest, VersionMatch } from '../../registry/read/list-position.ts'
import { type ListOptionLabels, readOptionLabels } from './option-labels.ts'
import { readInteger, readText } from './query-values.ts'

/** The options of a list, watch or collection delete, checked as far as possible without state. */
export interface ListOptions extends ListRequest, ListOptionLabels {
  readonly labelSelector: LabelSelector
  readonly fieldSelector: readonly FieldRequirement[]
  /** Only events have it. */
  readonly shardSelector: ShardSelector | undefined
  /** The texts that all selectors were parsed from. */
  readonly selectorTexts: readonly string[]
  /** Whether a watch begins with the existing events and a bookmark after the last one. */
  readonly sendInitialEvents: boolean | undefined
  readonly allowWatchBookmarks: boolean
  /** The lifetime of a watch. If undefined, the server decides; if negative, it ends at once. */
  readonly timeoutSeconds: number | undefined
}

/** The parts of a target that a list, a watch or a collection delete reads. */
export interface ListTarget
  extends Pick<
    ResourceTarget,
    'cluster' | 'resource' | 'query' | 'wantsWatch' | 'fields' | 'options'
  > {
  readonly place: Place
}

/** Throws a 400 for options that cannot be parsed and a 422 for contradictory options. */
export function readListOptions(target: ListTarget): ListOptions {
  const { query, fields, place } = target
  const timeoutSeconds = readInteger(query, 'timeoutSeconds')
  const limit = readInteger(query, 'limit') ?? 0
  const labelText = readText(query, 'labelSelector')
  const labelSelector = parseLabelSelector(labelText)
  if (fields instanceof Error) throw fields
  const shardText = target.resource === 'events' ? readText(query, 'shardSelector') : ''
  const name = 'name' in place ? place.name : undefined
  const namespace =
    target.cluster === ALL_CLUSTERS && 'namespace' in place ? place.namespace : undefined
  const state = readState(target)
  return {
    resourceVersion: state.resourceVersion,
    match: checkedMatch(state),
    continueToken: state.continueToken,
    limit: Math.max(limit, 0),
    ...readOptionLabels(target),
    labelSelector,
    fieldSelector: withNamespaceOfPath(withNameOfPath(fields, name), namespace),
    shardSelector: parseShardSelector(shardText),
    selectorTexts: [
      labelText,
      readText(query, 'fieldSelector'),
      shardText,
      name ?? '',
      namespace ?? '',
    ],
    sendInitialEvents: state.sendInitialEvents,
    allowWatchBookmarks: queryBoolean(query, 'allowWatchBookmarks') === true,
    timeoutSeconds: timeoutSeconds === 0 ? undefined : timeoutSeconds,
  }
}

/** The options that select a state. They depend on each other. */
interface StateOptions {
  /** Set by the query alone: on a watch path without `watch=true`, the rules for lists apply. */
  readonly isWatch: boolean
  readonly resourceVersion: string
  readonly match: string
  readonly continueToken: string
  readonly sendInitialEvents: boolean | undefined
}

function readState({ query, wantsWatch }: ListTarget): StateOptions {
  const sent: StateOptions = {
    isWatch: wantsWatch,
    resourceVersion: readText(query, 'resourceVersion'),
    match: readText(query, 'resourceVersionMatch'),
    continueToken: readText(query, 'continue'),
    sendInitialEvents: queryBoolean(query, 'sendInitialEvents'),
  }
  const isFromNow = sent.resourceVersion === '' || sent.resourceVersion === '0'
  const isPlain = sent.match === '' && sent.sendInitialEvents === undefined
  if (!sent.isWatch || !isFromNow || !isPlain) return sent
  return { ...sent, match: 'NotOlderThan', sendInitialEvents: true }
}

function checkedMatch(state: StateOptions): VersionMatch {
  const errors = state.isWatch ? watchErrors(state) : listErrors(state)
  if (errors.length > 0) {
    throw invalid({ kind: 'ListOptions', group: 'meta.k8s.io', name: '' }, errors)
  }
  return state.match as VersionMatch
}

function listErrors(state: StateOptions): readonly FieldError[] {
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

function watchErrors(state: StateOptions): readonly FieldError[] {
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
  return unsupportedField('resourceVersionMatch', goQuote(truncate(match)), supported)
}

/** A namespace of all clusters is not a range of keys, so it is selected like a field. */
function withNamespaceOfPath(
  fields: readonly FieldRequirement[],
  namespace: string | undefined,
): readonly FieldRequirement[] {
  if (namespace === undefined) return fields
  return [...fields, required('metadata.namespace', namespace)]
}

/** If the path has a name, a selector must repeat it, and may add other requirements. */
function withNameOfPath(
  fields: readonly FieldRequirement[],
  name: string | undefined,
): readonly FieldRequirement[] {
  if (name === undefined) return fields
  if (fields.length === 0) return [required('metadata.name', name)]
  if (requiredValue(fields, 'metadata.name') === name) return fields
  throw badRequest("fieldSelector metadata.name doesn't match requested name")
}

function required(field: 'metadata.name' | 'metadata.namespace', value: string): FieldRequirement {
  return { field, label: field, operator: '=', patterns: exactly(value) }
}
