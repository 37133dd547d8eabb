/** Events as clients send them, complete or with something unusual in a few places. */

import type { Random } from '../../../support/random.ts'
import { CORE_NAMES } from '../../../support/recorder-styles.ts'
import { Members, Raw, type Tree } from '../../fuzz/tree.ts'
import { apiVersionOf, type GroupName } from '../step.ts'
import {
  annotations,
  finalizers,
  integer,
  labels,
  owners,
  reference,
  text,
  time,
} from './values.ts'

const FIELDS: Readonly<Record<string, (random: Random) => Tree>> = {
  regarding: reference,
  related: reference,
  note: text,
  reason: text,
  action: text,
  type: (random) => (random.chance(0.6) ? random.pick(['Normal', 'Warning']) : text(random)),
  reportingController: text,
  reportingInstance: text,
  deprecatedSource: (random) =>
    random.pick<Tree>([
      null,
      new Members(),
      Members.of({ component: 'kubelet' }),
      Members.of({ component: 'kubelet', host: 'h' }),
      Members.of({ host: '', bogus: 1 }),
      'x',
      [],
    ]),
  deprecatedFirstTimestamp: time,
  deprecatedLastTimestamp: time,
  deprecatedCount: integer,
  eventTime: time,
  series: (random) =>
    random.chance(0.15)
      ? random.pick<Tree>([null, new Members(), 'x', []])
      : Members.of({ count: integer(random), lastObservedTime: time(random) }),
}

export function fieldName(group: GroupName, field: string): string {
  return group === 'core' ? (CORE_NAMES[field] ?? field) : field
}

/** Any field of an event as its group names it, and a value. */
export function anyField(random: Random, group: GroupName): [string, Tree] {
  const fields = Object.keys(FIELDS) as [string, ...string[]]
  const field = random.pick(fields)
  return [fieldName(group, field), FIELDS[field]?.(random) ?? null]
}

/** An event that both servers accept. */
export function goodEvent(random: Random, group: GroupName, name: string): Members {
  const isOld = group === 'core' && random.chance(0.5)
  const metadata: Record<string, Tree> = { name }
  if (random.chance(0.6)) metadata['namespace'] = '@{ns}'
  if (random.chance(0.5)) metadata['labels'] = Members.of({ app: random.pick(['v', 'w']) })
  if (random.chance(0.2)) metadata['finalizers'] = ['example.com/a']
  if (random.chance(0.2)) metadata['annotations'] = Members.of({ a: text(random) })
  const about = Members.of({
    kind: random.pick(['Pod', 'Node']),
    namespace: '@{ns}',
    name: random.pick(['p', 'q']),
    ...(random.chance(0.3) ? { uid: 'u1', apiVersion: 'v1' } : {}),
  })
  const members: Record<string, Tree> = {
    apiVersion: apiVersionOf(group),
    kind: 'Event',
    metadata: Members.of(metadata),
    [fieldName(group, 'regarding')]: about,
    reason: random.pick(['Started', 'Pulled', 'Killing']),
    [fieldName(group, 'note')]: random.chance(0.5) ? 'it happened' : 'again and again',
    type: random.pick(['Normal', 'Normal', 'Warning']),
  }
  if (isOld) {
    members['firstTimestamp'] = '2026-11-15T08:30:00Z'
    members['lastTimestamp'] = '2026-11-15T08:31:00Z'
    members['count'] = 1 + random.below(3)
    members['source'] = Members.of({ component: 'kubelet', host: 'node-1' })
  } else {
    members['eventTime'] = '2026-11-15T08:30:00.123456Z'
    members[fieldName(group, 'reportingController')] = 'example.com/controller'
    members['reportingInstance'] = 'controller-0'
    members['action'] = 'Starting'
    if (random.chance(0.3)) {
      members['series'] = Members.of({ count: 3, lastObservedTime: '2026-11-15T08:31:00.000000Z' })
    }
  }
  return Members.of(members)
}

/** The event with changes in one to three places. */
export function unusual(random: Random, group: GroupName, event: Members): Members {
  for (let count = 1 + random.below(3); count > 0; count--) {
    const die = random.next()
    if (die < 0.5) setMember(event, ...anyField(random, group))
    else if (die < 0.9) changeMetadata(random, metadataOf(event))
    else if (die < 0.94) {
      const { entries } = event
      if (entries.length > 0) entries.splice(random.below(entries.length), 1)
    } else setMember(event, ...oddMember(random))
  }
  return random.chance(0.04) ? repeated(random, event) : event
}

function oddMember(random: Random): [string, Tree] {
  return random.pick<[string, Tree]>([
    ['bogus', 1],
    ['Reason', 'x'],
    ['REASON', 'x'],
    ['metadata ', new Members()],
    ['apiVersion', 'v2'],
    ['apiVersion', 'v1'],
    ['apiVersion', 'events.k8s.io/v1'],
    ['apiVersion', 'events.k8s.io/v1beta1'],
    ['apiVersion', ''],
    ['kind', 'Pod'],
    ['kind', ''],
    ['kind', 'event'],
    ['status', new Members()],
    ['metadata', null],
    ['metadata', []],
    ['__proto__', new Members()],
  ])
}

/** Changes one of the members of metadata. */
export function changeMetadata(random: Random, metadata: Members): void {
  setMember(
    metadata,
    ...random.pick<() => [string, Tree]>([
      () => ['labels', labels(random)],
      () => ['labels', labels(random)],
      () => ['annotations', annotations(random)],
      () => ['annotations', annotations(random)],
      () => ['finalizers', finalizers(random)],
      () => ['finalizers', finalizers(random)],
      () => ['ownerReferences', owners(random)],
      () => ['ownerReferences', owners(random)],
      () => ['generateName', random.pick<Tree>(['gen-', 'Gen_', '', 'x'.repeat(300), null])],
      () => ['name', random.pick<Tree>(['n0', 'n1', 'Bad_Name', '', 'a/b', '..', 'é', null, 1])],
      () => ['namespace', random.pick<Tree>(['@{ns}', '', 'other', null, 1])],
      () => ['uid', random.pick<Tree>(['u', '', '@{uid n0}', null])],
      () => [
        'resourceVersion',
        random.pick<Tree>(['', '0', '@{rv n0}', '@{old n0}', 'abc', '-1', null, 1]),
      ],
      () => ['creationTimestamp', random.pick<Tree>([null, '2020-01-01T00:00:00Z', 'x'])],
      () => ['deletionTimestamp', random.pick<Tree>([null, '2020-01-01T00:00:00Z'])],
      () => ['deletionGracePeriodSeconds', random.pick<Tree>([null, 0, 5, 'x', -1])],
      () => ['generation', random.pick<Tree>([null, 0, 3, -1, new Raw('1.0')])],
      () => ['selfLink', random.pick<Tree>([null, '/x'])],
      () => ['managedFields', random.pick<Tree>([null, []])],
      () => ['bogus', 1],
      () => ['clusterName', 'x'],
    ])(),
  )
}

/** Duplicate members of an object, with the same or another value. */
function repeated(random: Random, event: Members): Members {
  const target = random.chance(0.5) ? event : metadataOf(event)
  const entry = target.entries[random.below(target.entries.length)]
  if (entry === undefined) return event
  target.entries.push([entry[0], random.chance(0.5) ? entry[1] : text(random)])
  return event
}

export function metadataOf(event: Members): Members {
  const metadata = event.entries.find(([name]) => name === 'metadata')?.[1]
  if (metadata instanceof Members) return metadata
  const made = new Members()
  setMember(event, 'metadata', made)
  return made
}

/** Replaces the member of that name, if there is one. */
export function setMember(members: Members, name: string, value: Tree): void {
  const entry = members.entries.find(([member]) => member === name)
  if (entry === undefined) members.entries.push([name, value])
  else entry[1] = value
}
