/** Options of lists that only this server has. kubectl can send them as field labels. */
import type { OptionName } from '../../api/selectors/field-selector.ts'
import { badRequest } from '../../api/status.ts'
import type { ResourceTarget } from '../../gate/target.ts'
import { truncate } from '../../lib/text/truncate.ts'
import type { ListOrder } from '../../storage/storage.ts'

export interface ListOptionLabels {
  /** The order by time last seen. Undefined if not sent. */
  readonly order: ListOrder | undefined
  /** The label `limit`: the list has at most this many events, and no further page. */
  readonly listMax: number | undefined
}

type OptionsTarget = Pick<ResourceTarget, 'query' | 'options'>

const NONE: ListOptionLabels = { order: undefined, listMax: undefined }

const LIST_MAX = 500

/** Only events have these options. */
export function readOptionLabels(
  target: OptionsTarget & Pick<ResourceTarget, 'resource'>,
): ListOptionLabels {
  if (target.resource !== 'events') return NONE
  const order = readOption(target, 'order')
  return {
    order:
      order === undefined ? undefined : readChoice('order', order, ['oldest', 'newest'] as const),
    listMax: readLimitLabel(target),
  }
}

/** Reads the label, not the parameter, which kubectl sends by itself. */
export function readLimitLabel({ options }: Pick<OptionsTarget, 'options'>): number | undefined {
  const text = options.find(({ name }) => name === 'limit')?.value
  if (text === undefined) return undefined
  const max = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (max >= 1 && max <= LIST_MAX) return max
  throw badRequest(
    `limit: ${JSON.stringify(truncate(text))}: as a field label write a number from 1 to ${LIST_MAX}`,
  )
}

/** Reads a parameter that may be a field label. Returns undefined if it was not sent. */
export function readOption(
  { query, options }: OptionsTarget,
  name: OptionName,
): string | undefined {
  const label = options.find((one) => one.name === name)?.value
  const parameter = query.get(name) ?? undefined
  if (label !== undefined && parameter !== undefined && label !== parameter) {
    throw badRequest(`${name} is both a parameter and a field label, with different values`)
  }
  return label ?? parameter
}

export function readChoice<Choice extends string>(
  name: OptionName,
  text: string,
  choices: readonly Choice[],
): Choice {
  const chosen = choices.find((choice) => choice === text)
  if (chosen !== undefined) return chosen
  throw badRequest(`${name}: ${JSON.stringify(truncate(text))}: write ${choices.join(' or ')}`)
}
