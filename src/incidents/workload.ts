/**
 * The workload of an object: what a person would scale or roll back, such as the Deployment of a pod.
 * Here it is derived from names alone, as the controllers of Kubernetes generate them:
 *
 * - A ReplicaSet is `<deployment>-<hash>`. The hash is a decimal number of 32 bits with its digits
 *   replaced by `456789bcdf`, so nearly always 8 to 10 characters.
 * - A Job of a CronJob is `<cronjob>-<minute>`: the minutes since 1970, eight digits until 2160.
 * - Other names of pods end with five random characters of `bcdfghjklmnpqrstvwxz2456789`, behind the
 *   name of the owner and a dash (for an indexed Job also behind the index and a dash). What precedes
 *   the random characters is cut to 58 characters.
 * - A pod of a StatefulSet is `<statefulset>-<ordinal>`.
 *
 * Some names can be read in two ways. The likelier one is chosen:
 *
 * - `<name>-<suffix>` may belong to a DaemonSet, a Job, a ReplicaSet without a Deployment, or a
 *   ReplicationController: DaemonSet, unless the name ends with a number of five or more digits, as
 *   one-off Jobs have (`build-12345`, `backup-20240131`, `deploy-1700000000`).
 * - `<name>-<n>-<suffix>` with up to four digits is an indexed Job's, not that of a DaemonSet or Job
 *   whose name ends with a number.
 * - `<name>-<n>` with up to four digits and no leading zero is a StatefulSet's. More digits are a
 *   number that somebody else chose, or a suffix.
 * - The control plane's static pods, `kube-apiserver-<node>` and the like, are themselves. Other
 *   static pods look like pods of StatefulSets when the node's name ends with a number.
 */
import { addToSet, DIGITS, SAFE_DIGITS, SAFE_LETTERS } from './character-sets.ts'

export interface Workload {
  readonly kind: string
  readonly name: string
  readonly rule: WorkloadRule
}

/**
 * What decided: nothing (the object is its own workload), patterns of names, notes of events, or
 * owner references.
 */
export type WorkloadRule = 'self' | 'name' | 'event' | 'owner'

export interface NamedObject {
  readonly kind: string
  readonly name: string
}

/** By names alone. */
export function workloadByName(object: NamedObject): Workload {
  const owner = ownerByName(object)
  if (owner === undefined) return selfOf(object)
  const above = ownerByName(owner) ?? owner
  return { kind: above.kind, name: above.name, rule: 'name' }
}

export function selfOf({ kind, name }: NamedObject): Workload {
  return { kind, name, rule: 'self' }
}

/** The owner of a pod, ReplicaSet or Job by its name; undefined when no pattern fits. */
export function ownerByName({ kind, name }: NamedObject): NamedObject | undefined {
  if (kind === 'Pod') return ownerOfPod(name)
  if (kind === 'ReplicaSet') return ownerBehindDash('Deployment', name, isHash)
  return kind === 'Job' ? ownerBehindDash('CronJob', name, isMinute) : undefined
}

const SUFFIX_LENGTH = 5
/** `generateName` is cut to this length before the suffix is added. */
export const BASE_LENGTH_MAX = 58
const ORDINAL_LENGTH_MAX = 4
const INDEX_LENGTH_MAX = 4
const HASH_LENGTH_MAX = 10
/** Of 5,000 hashes, one is shorter. Any safe characters are accepted as such a long hash. */
const LONG_HASH_LENGTH_MIN = 8
/** Of 40 million hashes, one is shorter. */
const HASH_LENGTH_MIN = 4
const MINUTE_LENGTH = 8

function ownerOfPod(name: string): NamedObject | undefined {
  if (isStatic(name)) return undefined
  const end = name.length - SUFFIX_LENGTH
  if (end > 1 && hasSuffix(name, end)) {
    const isWhole = name.charCodeAt(end - 1) === DASH
    if (isWhole) return likelier(ownerOfBase(name, end - 1), end)
    if (end === BASE_LENGTH_MAX) return ownerOfCutBase(name)
  }
  const dash = name.lastIndexOf('-')
  return dash > 0 && isOrdinal(name, dash + 1, name.length)
    ? { kind: 'StatefulSet', name: name.slice(0, dash) }
    : undefined
}

/**
 * A base of 58 characters was probably cut, right behind the name of a Deployment. There are many more of
 * them than DaemonSets with such a long name.
 */
function likelier(owner: NamedObject | undefined, baseLength: number): NamedObject | undefined {
  const isCut = baseLength === BASE_LENGTH_MAX && owner?.kind === 'DaemonSet'
  return isCut ? { kind: 'Deployment', name: owner.name } : owner
}

/** The owner of a pod whose name, without the dash and the suffix, ends at `end`. */
function ownerOfBase(name: string, end: number): NamedObject | undefined {
  const base = name.slice(0, end)
  const dash = base.lastIndexOf('-')
  if (dash <= 0) return { kind: 'DaemonSet', name: base }
  if (isMinute(base, dash + 1, end)) return { kind: 'Job', name: base }
  if (isHash(base, dash + 1, end)) return { kind: 'ReplicaSet', name: base }
  if (!isNumber(base, dash + 1, end)) return { kind: 'DaemonSet', name: base }
  if (end - dash - 1 > INDEX_LENGTH_MAX) return { kind: 'Job', name: base }
  if (!isIndex(base, dash + 1, end)) return { kind: 'DaemonSet', name: base }
  // The name of the Job was cut to make room for the index.
  return end + 1 === BASE_LENGTH_MAX ? undefined : { kind: 'Job', name: base.slice(0, dash) }
}

/**
 * The owner of a pod whose `generateName` was cut: it ends within the hash or the minute, and the name
 * before them is complete. When it ends within the name, the owner is unknown.
 */
function ownerOfCutBase(name: string): NamedObject | undefined {
  const dash = name.lastIndexOf('-', BASE_LENGTH_MAX - 1)
  const from = dash + 1
  const length = BASE_LENGTH_MAX - from
  if (dash <= 0 || length === 0) return undefined
  if (length <= HASH_LENGTH_MAX && areAll(name, from, BASE_LENGTH_MAX, IS_HASH)) {
    return { kind: 'Deployment', name: name.slice(0, dash) }
  }
  if (length > MINUTE_LENGTH || !isNumber(name, from, BASE_LENGTH_MAX)) return undefined
  return { kind: 'CronJob', name: name.slice(0, dash) }
}

type Test = (text: string, from: number, end: number) => boolean

function ownerBehindDash(kind: string, name: string, matches: Test): NamedObject | undefined {
  const dash = name.lastIndexOf('-')
  if (dash <= 0 || !matches(name, dash + 1, name.length)) return undefined
  return { kind, name: name.slice(0, dash) }
}

function isStatic(name: string): boolean {
  if (!name.startsWith('kube-')) return false
  return STATIC_PREFIXES.some((prefix) => name.startsWith(prefix))
}

const STATIC_PREFIXES = ['kube-apiserver-', 'kube-controller-manager-', 'kube-scheduler-']

function hasSuffix(name: string, from: number): boolean {
  return areAll(name, from, name.length, IS_SAFE) && !WORDS.includes(name.slice(from))
}

/** Words of five letters that a person uses in names and that have no vowels. */
const WORDS = ['https', 'httpd', 'pgsql', 'mssql', 'btrfs', 'sshfs']

function isHash(text: string, from: number, end: number): boolean {
  const length = end - from
  if (length < HASH_LENGTH_MIN || length > HASH_LENGTH_MAX) return false
  if (length >= LONG_HASH_LENGTH_MIN) return areAll(text, from, end, IS_SAFE)
  if (!areAll(text, from, end, IS_HASH)) return false
  // Otherwise it is more likely to be the index of a Job, or a word.
  return has(text, from, end, IS_DIGIT) && !isNumber(text, from, end)
}

/** Whether these are eight digits that are neither a date nor the digits of a hash. */
function isMinute(text: string, from: number, end: number): boolean {
  if (end - from !== MINUTE_LENGTH || !isNumber(text, from, end)) return false
  return !areAll(text, from, end, IS_HASH) && !isDate(text, from)
}

/** Whether a date of this century, such as 20240131, begins here. */
function isDate(text: string, from: number): boolean {
  const year = Number(text.slice(from, from + 4))
  const month = Number(text.slice(from + 4, from + 6))
  const day = Number(text.slice(from + 6, from + 8))
  return year >= 2000 && year < 2100 && month >= 1 && month <= 12 && day >= 1 && day <= 31
}

function isOrdinal(text: string, from: number, end: number): boolean {
  return end - from <= ORDINAL_LENGTH_MAX && isIndex(text, from, end)
}

/** Whether these are digits without a leading zero. */
function isIndex(text: string, from: number, end: number): boolean {
  return isNumber(text, from, end) && (end - from === 1 || text.charCodeAt(from) !== ZERO)
}

function isNumber(text: string, from: number, end: number): boolean {
  return end > from && areAll(text, from, end, IS_DIGIT)
}

const DASH = 0x2d
const ZERO = 0x30

// Sets of characters, as bits.
const IS_DIGIT = 1
const IS_SAFE = 2
const IS_HASH = 4

const TRAITS: Uint8Array = traits()

function traits(): Uint8Array {
  const table = new Uint8Array(128)
  addToSet(table, DIGITS, IS_DIGIT)
  addToSet(table, SAFE_LETTERS + SAFE_DIGITS, IS_SAFE)
  addToSet(table, '456789bcdf', IS_HASH)
  return table
}

function areAll(text: string, from: number, end: number, bit: number): boolean {
  for (let index = from; index < end; index++) {
    if (((TRAITS[text.charCodeAt(index)] ?? 0) & bit) === 0) return false
  }
  return true
}

function has(text: string, from: number, end: number, bit: number): boolean {
  for (let index = from; index < end; index++) {
    if (((TRAITS[text.charCodeAt(index)] ?? 0) & bit) !== 0) return true
  }
  return false
}
