import { StorageError } from '../storage/errors.ts'
import type { StoredEvent } from '../storage/storage.ts'

/** How long an event is kept after its last change, in milliseconds. */
export type Lifetime = number | 'never'

/** Selects events that have all the values given here. */
export interface RuleSelector {
  readonly cluster?: string | undefined
  readonly namespace?: string | undefined
  readonly type?: string | undefined
  readonly reason?: string | undefined
  readonly reportingController?: string | undefined
}

/** A row of the table. Without a selector it applies to every event. */
export interface RetentionRule {
  readonly selector?: RuleSelector | undefined
  readonly lifetime: Lifetime
}

/** The parts of an event that decide how long it is kept. */
export type Keepable = Pick<StoredEvent, 'key' | 'fields'>

/**
 * How long events are kept: a table of rules, of which the first that matches applies.
 *
 * It is evaluated when an event may be due, not when it is written: a changed table applies to
 * stored events as well.
 */
export class RetentionPolicy {
  readonly #rules: readonly RetentionRule[]

  /** The last rule must match every event, so that no event is kept by mistake. */
  constructor(rules: readonly RetentionRule[]) {
    if (rules.length === 0 || rules.at(-1)?.selector !== undefined) {
      throw new RangeError('the last rule must match every event')
    }
    for (const { lifetime } of rules) {
      if (lifetime !== 'never' && !(lifetime > 0)) {
        throw new RangeError(`invalid lifetime: ${lifetime}`)
      }
    }
    this.#rules = rules
  }

  /** One lifetime for every event. */
  static uniform(lifetime: Lifetime): RetentionPolicy {
    return new RetentionPolicy([{ lifetime }])
  }

  lifetimeOf(event: Keepable): Lifetime {
    const rule = this.#rules.find(
      ({ selector }) => selector === undefined || matches(selector, event),
    )
    return rule?.lifetime ?? 'never'
  }

  /** Whether all events have the same lifetime, so that a change of an event cannot change it. */
  get isUniform(): boolean {
    return this.#rules.length === 1
  }

  /** The shortest lifetime; undefined when no event ever expires. */
  get shortestMs(): number | undefined {
    const lifetimes = this.#lifetimesMs()
    return lifetimes.length === 0 ? undefined : Math.min(...lifetimes)
  }

  /** The longest lifetime of events that expire; 0 when none does. */
  get longestMs(): number {
    return Math.max(0, ...this.#lifetimesMs())
  }

  #lifetimesMs(): readonly number[] {
    return this.#rules.map(({ lifetime }) => lifetime).filter((ms) => ms !== 'never')
  }
}

function matches(selector: RuleSelector, event: Keepable): boolean {
  const { cluster, namespace, type, reason, reportingController } = selector
  if (cluster !== undefined && cluster !== event.key.cluster) return false
  if (namespace !== undefined && namespace !== event.key.namespace) return false
  // Reading the fields parses the whole event: skip it when the selector does not need them.
  if (type === undefined && reason === undefined && reportingController === undefined) return true
  const fields = fieldsOf(event)
  return (
    fields !== undefined &&
    (type === undefined || type === fields.type) &&
    (reason === undefined || reason === fields.reason) &&
    (reportingController === undefined || reportingController === fields.reportingController)
  )
}

/** An unreadable event has no values: only rules that require none match it. */
function fieldsOf(event: Keepable): StoredEvent['fields'] | undefined {
  try {
    return event.fields
  } catch (error) {
    if (error instanceof StorageError && error.kind === 'corrupt') return undefined
    throw error
  }
}
