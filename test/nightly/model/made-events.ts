/** Random events for the model: few values, so that queries find them, and hostile ones. */
import type { EventKey } from '../../../src/storage/storage.ts'
import type { Random } from '../../support/random.ts'

export type Choices = readonly [string, ...string[]]

export const CLUSTERS: Choices = ['local', 'east', 'west']
/** They share prefixes, and the next character sorts before or after the slash of a key. */
export const NAMESPACES: Choices = ['a', 'a-b', 'ab', 'default', 'a0']
export const NAMES = 40
export const REASONS: Choices = [
  'BackOff',
  'Started',
  'backoff',
  'FailedMount',
  '',
  'Grüße',
  '😀',
  'a,b=c\\d',
  'a|b',
]
export const TYPES: Choices = ['Normal', 'Warning', '', 'warning', 'Odd']
export const CONTROLLERS: Choices = ['kubelet', 'default-scheduler', '', 'kubelet2', '__proto__']
export const INSTANCES: Choices = ['node-1', 'node-2', '']
export const ACTIONS: Choices = ['Binding', 'Killing', '', 'constructor', 'Bind*']
export const KINDS: Choices = ['Pod', 'pod', 'Node', 'Deployment', '', 'POD', 'ſ', 'İstio']
export const OBJECTS: Choices = ['web-0', 'web-1', 'web', '', 'ä', 'Web-0']
export const UIDS: Choices = [
  '0b9d3a51-7a6c-4c4f-9a31-5c6a0d4b1e21',
  '0b9d3a51-7a6c-4c4f-9a31-5c6a0d4b1e22',
  '0b9d3a517a6c4c4f9a315c6a0d4b1e23',
  '',
]
export const NOTES: Choices = [
  'Back-off restarting failed container',
  'BACK-OFF',
  'Straße nach Köln',
  'STRASSE',
  'İstanbul',
  'ΟΔΥΣΣΕΥΣ',
  '😀 and 😁',
  '',
  'line\nbreak \u2028 "quoted" \\ back\\slash',
  'x'.repeat(300),
]
const APP_LABELS: Choices = ['web', 'db', '']
const REFERENCE_TEXTS: Choices = ['v1', 'apps/v1', '', 'spec.containers{app}', '17']
/** Valid, but at the ends of what a time can be. Storage rejects a text that is not a time. */
const ODD_TIMES = [
  '1969-12-31T23:59:59.999999Z',
  '1970-01-01T00:00:00.000000Z',
  '0001-01-01T00:00:01.000000Z',
  '9999-12-31T23:59:59.999999Z',
  '2024-02-29T12:00:00.000001Z',
] as const
const ODD_COUNTS = [0, -3, 2_147_483_647, null] as const

/** How many different times there are: events share them. */
const MOMENTS = 60
export const MOMENT_MS = 61_000

/** The times of events, before the time of the run. */
export function momentMs(random: Random, nowMs: number): number {
  return nowMs - random.below(MOMENTS) * MOMENT_MS - random.pick([0, 0, 1, 999, 500])
}

export function madeKey(random: Random): EventKey {
  return {
    cluster: random.pick(CLUSTERS),
    namespace: random.pick(NAMESPACES),
    name: nameAt(random.below(NAMES)),
  }
}

export function nameAt(index: number): string {
  return `e-${index}.${(index * 7919).toString(16)}`
}

/** A body as it is stored: the metadata comes first. */
export function madeBody(random: Random, key: EventKey, nowMs: number): Buffer {
  const { name, namespace } = key
  const time = (kind: TimeKind): string | null => madeTime(random, kind, nowMs)
  const event = {
    metadata: {
      name,
      namespace,
      uid: random.pick(UIDS),
      ...some(random, 0.9, { creationTimestamp: time('time') }),
      ...some(random, 0.4, { labels: { app: random.pick(APP_LABELS) } }),
    },
    ...some(random, 0.6, { eventTime: time('microTime') }),
    ...some(random, 0.3, { series: madeSeries(random, time) }),
    ...texts(random, {
      reportingController: CONTROLLERS,
      reportingInstance: INSTANCES,
      action: ACTIONS,
      reason: REASONS,
      note: NOTES,
      type: TYPES,
    }),
    ...some(random, 0.9, { regarding: madeReference(random) }),
    ...some(random, 0.4, { related: madeReference(random) }),
    ...some(random, 0.4, { deprecatedSource: { component: random.pick(CONTROLLERS) } }),
    ...some(random, 0.4, { deprecatedFirstTimestamp: time('time') }),
    ...some(random, 0.4, { deprecatedLastTimestamp: time('time') }),
    ...some(random, 0.4, { deprecatedCount: madeCount(random) }),
  }
  return Buffer.from(JSON.stringify(event))
}

type TimeKind = 'time' | 'microTime'

function madeSeries(random: Random, time: (kind: TimeKind) => string | null): object | null {
  if (random.chance(0.05)) return random.pick([null, {}])
  return { count: madeCount(random), ...some(random, 0.9, { lastObservedTime: time('microTime') }) }
}

function madeCount(random: Random): number | null {
  return random.chance(0.1) ? random.pick(ODD_COUNTS) : 1 + random.below(40)
}

function madeReference(random: Random): object | null {
  if (random.chance(0.05)) return random.pick([null, {}])
  return texts(random, {
    kind: KINDS,
    namespace: NAMESPACES,
    name: OBJECTS,
    uid: UIDS,
    apiVersion: REFERENCE_TEXTS,
    resourceVersion: REFERENCE_TEXTS,
    fieldPath: REFERENCE_TEXTS,
  })
}

/** Formats a time in the only form in which such a field is stored. */
function madeTime(random: Random, kind: TimeKind, nowMs: number): string | null {
  if (random.chance(0.05)) return null
  const millis = new Date(momentMs(random, nowMs)).toISOString().slice(0, 23)
  const micros = `${millis}${random.pick(['000', '001', '999'])}Z`
  const text = random.chance(0.05) ? random.pick(ODD_TIMES) : micros
  return kind === 'microTime' ? text : `${text.slice(0, 19)}Z`
}

/** Members with these values; some are absent. */
function texts(
  random: Random,
  values: Readonly<Record<string, Choices>>,
): Record<string, string | null> {
  const members: Record<string, string | null> = {}
  for (const [name, choices] of Object.entries(values)) {
    if (random.chance(0.9)) members[name] = random.chance(0.03) ? null : random.pick(choices)
  }
  return members
}

function some<T extends object>(random: Random, probability: number, members: T): T | undefined {
  return random.chance(probability) ? members : undefined
}
