/**
 * The file of `--retention-policy-file`: how long events live, how many may be stored, and how long
 * they stay in history.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { TIDINGS_API_VERSION } from '../api/tidings-group.ts'
import { labelProblems } from '../api/validation/names.ts'
import { readBounded } from '../lib/files/bounded-file.ts'
import {
  checkedText,
  configurationIn,
  errorIn,
  fieldOf,
  listOf,
  mistake,
  objectOf,
  oneOf,
  shown,
  textOf,
} from '../lib/files/config-fields.ts'
import { follow, type OnPoll } from '../lib/files/follow.ts'
import { parseLongDuration } from '../lib/go/duration.ts'
import { parseQuantity } from '../lib/go/quantity.ts'
import { type Json, type JsonObject, memberOf } from '../lib/json.ts'
import type { Log, LogFields } from '../lib/log/log.ts'
import { type HistoryKeep, HistoryPolicy, type HistoryRule } from './history-policy.ts'
import {
  DEFAULT_RULE,
  type Lifetime,
  type RetentionBudget,
  RetentionPolicy,
  type RetentionRule,
} from './policy.ts'
import type { RuleSelector } from './rule-selector.ts'

const KIND = 'RetentionPolicy'
const FILE_BYTES_MAX = 256 * 1024
/** Every event is compared with each rule, and each rule is a metric label. */
const RULES_MAX = 100
const BUDGETS_MAX = 100
const VALUES_MAX = 100
/** The minimum of `--event-ttl` too: the sweeper runs once a second. */
const LIFETIME_MS_MIN = 1_000
/** Files of history have the events of a day. */
const HISTORY_MS_MIN = 86_400_000
const LIFETIME_MS_MAX = 10 * 365 * 86_400_000
const NUMBER_MAX = 2 ** 50
/** Time between the two reads that must find the same new content. */
const SETTLE_MS = 1_000
const NEWLINE = 0x0a

export interface PolicyFileOptions {
  /** `--event-ttl`: the lifetime of events that no rule matches. */
  readonly lifetime: Lifetime
  readonly log: Log
  readonly onPoll?: OnPoll | undefined
}

interface Loaded {
  readonly content: Buffer
  readonly policy: RetentionPolicy
}

export type PolicySource = Pick<PolicyFile, 'policy' | 'onChange'>

/**
 * Follows the file. While a changed file is invalid, the last valid version stays in effect, so a
 * mistake deletes nothing. A half-written file can be a valid policy, so new content is used only
 * after two reads in a row have found it.
 */
export class PolicyFile {
  #policy: RetentionPolicy
  readonly #listeners: (() => void)[] = []
  readonly #follower: { stop(): void }

  /** Rejects if the file is invalid; the error names the file and the field. */
  static async open(path: string, options: PolicyFileOptions): Promise<PolicyFile> {
    const first = await load(path, options.lifetime)
    options.log.info('Retention policy in use', summaryOf(path, first.policy))
    return new PolicyFile(path, first, options)
  }

  private constructor(path: string, first: Loaded, options: PolicyFileOptions) {
    const { lifetime, log, onPoll } = options
    this.#policy = first.policy
    this.#follower = follow({
      inUse: first,
      load: (current) => load(path, lifetime, current),
      onChange: ({ policy }) => {
        this.#policy = policy
        log.info('Retention policy reloaded', summaryOf(path, policy))
        for (const listener of this.#listeners) listener()
      },
      onProblem: (err) => log.warn('Retention policy not reloaded', { err }),
      onRecovered: () => log.info('Retention policy valid again, unchanged', { file: path }),
      onPoll,
    })
  }

  get policy(): RetentionPolicy {
    return this.#policy
  }

  /** Calls `listener` after each change of `policy`. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  stop(): void {
    this.#follower.stop()
  }
}

/** Log fields. Does not count the rule of `--event-ttl`, which is not in the file. */
function summaryOf(file: string, policy: RetentionPolicy): LogFields {
  const { rules, budgets, history, fingerprint } = policy
  return {
    file,
    rules: rules.length - 1,
    budgets: budgets.length,
    historyRules: history.rules.length - 1,
    fingerprint,
  }
}

/** Returns `current` itself when the content of the file is unchanged. */
async function load(path: string, lifetime: Lifetime, current?: Loaded): Promise<Loaded> {
  const content = await readBounded(path, FILE_BYTES_MAX)
  if (current?.content.equals(content) === true) return current
  if (current !== undefined) await expectSettled(path, content)
  try {
    if (content.at(-1) !== NEWLINE) throw new Error('has no final newline: it may be half-written')
    return { content, policy: readPolicy(content.toString(), lifetime) }
  } catch (cause) {
    throw errorIn(path, cause)
  }
}

async function expectSettled(path: string, content: Buffer): Promise<void> {
  await sleep(SETTLE_MS, undefined, { ref: false })
  const again = await readBounded(path, FILE_BYTES_MAX)
  if (!again.equals(content)) throw new Error(`${path}: is being written`)
}

/** Throws an error with the path of the invalid field. */
export function readPolicy(text: string, lifetime: Lifetime): RetentionPolicy {
  const value = configurationIn(text, { apiVersion: TIDINGS_API_VERSION, kind: KIND })
  const tree = objectOf(value, '', ['apiVersion', 'kind', 'rules', 'budgets', 'history'])
  const [rules, budgets, history] = [readRules(tree), readBudgets(tree), readHistory(tree)]
  // Most likely the rest of the file is missing: a policy without all of them needs no file.
  if (rules.length + budgets.length === 0 && history === undefined) {
    throw mistake('', 'has neither rules, budgets nor history')
  }
  return new RetentionPolicy({ rules, lifetime, budgets, history })
}

const SELECTOR_FIELDS = ['cluster', 'namespace', 'type', 'reason', 'kind', 'controller'] as const

function readRules(tree: JsonObject): readonly RetentionRule[] {
  const names = new Set([DEFAULT_RULE])
  const rules = entriesOf(tree, 'rules', '', RULES_MAX).map((entry, index): RetentionRule => {
    const at = `rules[${index}]`
    const rule = objectOf(entry, at, ['name', ...SELECTOR_FIELDS, 'lifetime'])
    return {
      name: nameOf(rule, at, { names, unnamed: `rule-${index + 1}` }),
      selector: readSelector(rule, at),
      lifetime: readLifetime(rule, at, LIFETIME),
    }
  })
  expectEffect(rules, 'rules')
  return rules
}

/** Rejects a rule after one that matches every event. */
function expectEffect(rules: readonly { readonly selector: RuleSelector }[], at: string): void {
  const all = rules.findIndex(({ selector }) => Object.keys(selector).length === 0)
  if (all >= 0 && all < rules.length - 1) {
    throw mistake(`${at}[${all + 1}]`, `has no effect: ${at}[${all}] matches every event`)
  }
}

const KEEP_FIELDS = ['lifetime', 'archive'] as const

function readHistory(tree: JsonObject): HistoryPolicy | undefined {
  const value = memberOf(tree, 'history')
  if (value === undefined) return undefined
  const history = objectOf(value, 'history', [...KEEP_FIELDS, 'rules'])
  const names = new Set<string>()
  const rules = entriesOf(history, 'rules', 'history', RULES_MAX).map(
    (entry, index): HistoryRule => {
      const at = `history.rules[${index}]`
      const rule = objectOf(entry, at, ['name', ...SELECTOR_FIELDS, ...KEEP_FIELDS])
      return {
        name: nameOf(rule, at, { names, unnamed: `rule-${index + 1}` }),
        selector: readSelector(rule, at),
        keep: readKeep(rule, at),
      }
    },
  )
  expectEffect(rules, 'history.rules')
  const isGiven = KEEP_FIELDS.some((name) => memberOf(history, name) !== undefined)
  return new HistoryPolicy(rules, isGiven ? readKeep(history, 'history') : undefined)
}

/** Reads `lifetime`, or `archive: false`. */
function readKeep(tree: JsonObject, at: string): HistoryKeep {
  const archive = memberOf(tree, 'archive')
  if (archive === undefined) {
    const lifetime = readLifetime(tree, at, HISTORY_LIFETIME)
    return lifetime === 'never' ? 'forever' : lifetime
  }
  const field = fieldOf(at, 'archive')
  if (archive !== false) {
    throw mistake(field, `${shown(archive)} is not false: give what is archived a lifetime instead`)
  }
  if (memberOf(tree, 'lifetime') !== undefined) {
    throw mistake(field, 'what is not archived has no lifetime: remove one of them')
  }
  return 'never-archived'
}

/** Has no member for an unrestricted field. */
function readSelector(rule: JsonObject, at: string): RuleSelector {
  const selector: Record<string, readonly string[]> = {}
  for (const field of SELECTOR_FIELDS) {
    const values = valuesOf(rule, field, at)
    if (values !== undefined) selector[field] = values
  }
  return selector
}

interface LifetimeBounds {
  readonly minMs: number
  readonly range: string
  readonly examples: string
}

const LIFETIME: LifetimeBounds = {
  minMs: LIFETIME_MS_MIN,
  range: '1s and 3650d',
  examples: 'write a duration such as 6h, 7d or 2w, or never',
}
const HISTORY_LIFETIME: LifetimeBounds = {
  minMs: HISTORY_MS_MIN,
  range: '1d and 3650d',
  examples: 'write a duration such as 90d or 52w, or never, or archive: false',
}

function readLifetime(
  rule: JsonObject,
  at: string,
  { minMs, range, examples }: LifetimeBounds,
): Lifetime {
  const field = fieldOf(at, 'lifetime')
  const bare = String(memberOf(rule, 'lifetime'))
  if (/^[1-9]\d*$/.test(bare))
    throw mistake(field, `${bare} has no unit: write ${bare}h or ${bare}d`)
  const text = textOf(rule, 'lifetime', at)
  if (text === undefined) throw mistake(field, `is missing: ${examples}`)
  if (text === 'never') return text
  let ms: number
  try {
    ms = parseLongDuration(text)
  } catch (error) {
    throw mistake(field, error instanceof Error ? error.message : String(error))
  }
  if (ms >= minMs && ms <= LIFETIME_MS_MAX) return ms
  throw mistake(field, `${shown(text)} is not between ${range}: ${examples}`)
}

const BUDGET_FIELDS = ['name', 'per', 'cluster', 'namespace', 'events', 'bytes']

function readBudgets(tree: JsonObject): readonly RetentionBudget[] {
  const names = new Set<string>()
  return entriesOf(tree, 'budgets', '', BUDGETS_MAX).map((entry, index) => {
    const at = `budgets[${index}]`
    const budget = objectOf(entry, at, BUDGET_FIELDS)
    const name = nameOf(budget, at, { names, unnamed: `budget-${index + 1}` })
    if (memberOf(budget, 'per') === undefined) {
      throw mistake(fieldOf(at, 'per'), 'is missing: write Namespace or Cluster')
    }
    const per = oneOf(budget, 'per', at, ['Namespace', 'Cluster'])
    const namespace = valuesOf(budget, 'namespace', at)
    if (namespace !== undefined && per === 'Cluster') {
      throw mistake(fieldOf(at, 'namespace'), 'needs per: Namespace')
    }
    const events = numberOf(budget, 'events', at)
    const bytes = numberOf(budget, 'bytes', at)
    if (events === undefined && bytes === undefined) {
      throw mistake(at, 'needs events, bytes or both')
    }
    return { name, per, cluster: valuesOf(budget, 'cluster', at), namespace, events, bytes }
  })
}

/** A list that may be missing. */
function entriesOf(tree: JsonObject, name: string, at: string, max: number): readonly Json[] {
  return memberOf(tree, name) === undefined ? [] : listOf(tree, name, at, max)
}

function nameOf(
  tree: JsonObject,
  at: string,
  { names, unnamed }: { readonly names: Set<string>; readonly unnamed: string },
): string {
  const field = fieldOf(at, 'name')
  const name = textOf(tree, 'name', at) ?? unnamed
  const [problem] = labelProblems(name)
  if (problem !== undefined) throw mistake(field, `${shown(name)}: ${problem}`)
  if (name === DEFAULT_RULE && names.has(name)) {
    throw mistake(field, `${shown(name)} is reserved for --event-ttl: choose another name`)
  }
  if (names.has(name)) throw mistake(field, `${shown(name)} is used twice`)
  names.add(name)
  return name
}

/** Reads a string or a list of strings; undefined when it is missing. */
function valuesOf(tree: JsonObject, name: string, at: string): readonly string[] | undefined {
  const value = memberOf(tree, name)
  if (value === undefined) return undefined
  const field = fieldOf(at, name)
  if (!Array.isArray(value)) return [checkedValue(value, name, field)]
  const items = listOf(tree, name, at, VALUES_MAX)
  if (items.length === 0) throw mistake(field, 'is empty: remove it to match all')
  return items.map((item, index) => checkedValue(item, name, `${field}[${index}]`))
}

function checkedValue(item: Json, name: string, field: string): string {
  const value = checkedText(item, field)
  if (value.includes('*')) {
    throw mistake(field, `${shown(value)}: patterns are not supported: write a list of values`)
  }
  const [problem] = name === 'cluster' || name === 'namespace' ? labelProblems(value) : []
  if (problem !== undefined) throw mistake(field, `${shown(value)}: ${problem}`)
  if (name === 'type' && value !== 'Normal' && value !== 'Warning') {
    throw mistake(field, `${shown(value)} is not one of Normal, Warning`)
  }
  return value
}

/** Reads a whole number above 0, with or without a unit; undefined when it is missing. */
function numberOf(tree: JsonObject, name: 'events' | 'bytes', at: string): number | undefined {
  const value = memberOf(tree, name)
  if (value === undefined) return undefined
  const number = parseQuantity(typeof value === 'object' ? '' : String(value)) ?? 0
  if (number >= 1 && number <= NUMBER_MAX) return number
  const examples = name === 'bytes' ? '500k, 200Mi or 2Gi' : '100000, 100k or 1M'
  const advice = `write a whole number above 0, such as ${examples}`
  throw mistake(fieldOf(at, name), `${shown(value)} is not a number of ${name}: ${advice}`)
}
