import { StorageError } from '../storage/errors.ts'
import type { StoredEvent } from '../storage/storage.ts'

/** How long an event is kept after its last change, in milliseconds. */
export type Lifetime = number | 'never'

/** Which events a rule is about: those that have all the values named here. */
export interface RuleSelector {
  readonly namespace?: string | undefined
  readonly type?: string | undefined
  readonly reason?: string | undefined
  readonly reportingController?: string | undefined
}

/** One row of the table. Without a selector it is about every event. */
export interface RetentionRule {
  readonly selector?: RuleSelector | undefined
  readonly lifetime: Lifetime
}

/** What of an event decides how long it is kept. */
export type Keepable = Pick<StoredEvent, 'key' | 'fields'>

/**
 * How long events are kept: a table of rules, of which the first that is about an event counts.
 *
 * It is asked when an event may be due, not when it is written: a changed table counts for what is
 * stored already.
 */
export class RetentionPolicy {
  readonly #rules: readonly RetentionRule[]

  /** The last rule must be about every event, so that nothing is kept by mistake. */
  constructor(rules: readonly RetentionRule[]) {
    if (rules.length === 0 || rules.at(-1)?.selector !== undefined) {
      throw new RangeError('the last rule must be about every event')
    }
    for (const { lifetime } of rules) {
      if (lifetime !== 'never' && !(lifetime > 0)) {
        throw new RangeError(`not a lifetime: ${lifetime}`)
      }
    }
    this.#rules = rules
  }

  /** One lifetime for every event. */
  static uniform(lifetime: Lifetime): RetentionPolicy {
    return new RetentionPolicy([{ lifetime }])
  }

  lifetimeOf(event: Keepable): Lifetime {
    const rule = this.#rules.find(({ selector }) => selector === undefined || fits(selector, event))
    return rule?.lifetime ?? 'never'
  }

  /** Whether a change of an event can change how long it is kept. */
  get isUniform(): boolean {
    return this.#rules.length === 1
  }

  /** The shortest lifetime there is; undefined when nothing ever goes. */
  get shortestMs(): number | undefined {
    const lifetimes = this.#lifetimesMs()
    return lifetimes.length === 0 ? undefined : Math.min(...lifetimes)
  }

  /** The longest after which something goes; 0 when nothing ever does. */
  get longestMs(): number {
    return Math.max(0, ...this.#lifetimesMs())
  }

  #lifetimesMs(): readonly number[] {
    return this.#rules.map(({ lifetime }) => lifetime).filter((ms) => ms !== 'never')
  }
}

function fits(selector: RuleSelector, event: Keepable): boolean {
  const { namespace, type, reason, reportingController } = selector
  if (namespace !== undefined && namespace !== event.key.namespace) return false
  // The fields cost the parsing of the whole event: leave them alone where nobody asks.
  if (type === undefined && reason === undefined && reportingController === undefined) return true
  const fields = fieldsOf(event)
  return (
    fields !== undefined &&
    (type === undefined || type === fields.type) &&
    (reason === undefined || reason === fields.reason) &&
    (reportingController === undefined || reportingController === fields.reportingController)
  )
}

/** An event that cannot be read has no values, and goes by the rules that ask for none. */
function fieldsOf(event: Keepable): StoredEvent['fields'] | undefined {
  try {
    return event.fields
  } catch (error) {
    if (error instanceof StorageError && error.kind === 'corrupt') return undefined
    throw error
  }
}
