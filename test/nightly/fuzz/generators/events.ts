/** Events that the server accepts, and mutations of them. */
import type { Random } from '../../../support/random.ts'
import { containersIn, Members, type Tree, treeOf } from '../tree.ts'
import { hostileName, hostileText, hostileValue } from './values.ts'

export const NAMESPACE = 'fuzz'
export const API_VERSION = 'events.k8s.io/v1'
export const COLLECTION: string = `/apis/${API_VERSION}/namespaces/${NAMESPACE}/events`

const TIME = '2026-11-15T08:30:00.000000Z'

function event(name: string, more: Record<string, unknown>, metadata: object = {}): unknown {
  return {
    apiVersion: API_VERSION,
    kind: 'Event',
    metadata: { name, namespace: NAMESPACE, ...metadata },
    eventTime: TIME,
    reportingController: 'example.com/controller',
    reportingInstance: 'controller-0',
    action: 'Starting',
    reason: 'Started',
    regarding: { kind: 'Pod', namespace: NAMESPACE, name: 'pod-1', uid: 'u-1', apiVersion: 'v1' },
    note: 'it has started',
    type: 'Normal',
    ...more,
  }
}

const owner = (uid: string): object => ({ apiVersion: 'v1', kind: 'Pod', name: `pod-${uid}`, uid })

/** Events that exist from the beginning and are never changed: patches are tried on them. */
export const STANDING: ReadonlyMap<string, unknown> = new Map([
  ['base-0', event('base-0', {})],
  [
    'base-1',
    event(
      'base-1',
      { series: { count: 3, lastObservedTime: TIME } },
      { labels: { app: 'a', 'b/c': '1' } },
    ),
  ],
  [
    'base-2',
    event(
      'base-2',
      { type: 'Warning', related: { kind: 'Node', name: 'node-1' } },
      {
        labels: { app: 'b' },
        annotations: { 'example.com/a': 'x', b: '<&>\u2028 "\\' },
        finalizers: ['example.com/one', 'example.com/two', 'example.com/three'],
        ownerReferences: [owner('1'), owner('2'), owner('3')],
      },
    ),
  ],
  [
    'base-3',
    event(
      'base-3',
      { note: 'é𝒳\n'.repeat(40) },
      { annotations: { constructor: 'a', toString: 'b' } },
    ),
  ],
])

/** An event of nearly the maximum size: 113 of 128 KiB. */
export const GREAT_NAME = 'great'
export const GREAT: unknown = event(
  GREAT_NAME,
  { related: { name: 'é"'.repeat(12_000) } },
  {
    labels: Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`k${at}`, 'v'])),
    annotations: Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`a${at}`, '<é>'])),
    finalizers: Array.from({ length: 1000 }, (_, at) => `example.com/${at}`),
    ownerReferences: Array.from({ length: 400 }, (_, at) => owner(String(at))),
  },
)

/** An event that would be accepted as it is. */
export function validEvent(random: Random, name: string): Members {
  const model = [...STANDING.values()][random.below(STANDING.size)]
  const tree = treeOf(model) as Members
  const metadata = memberIn(tree, 'metadata')
  if (metadata instanceof Members) {
    const own: [string, Tree] = random.chance(0.1) ? ['generateName', 'made-'] : ['name', name]
    metadata.entries = [own, ...metadata.entries.filter(([member]) => member !== 'name')]
    // Those would stay for good.
    if (random.chance(0.9)) {
      metadata.entries = metadata.entries.filter(([member]) => member !== 'finalizers')
    }
  }
  return tree
}

/** Changes the tree in a few places, so that most of it stays valid. */
export function mutate(random: Random, tree: Members): Members {
  for (let count = random.below(4); count > 0; count--) {
    const containers = containersIn(tree)
    const container = containers[random.below(containers.length)]
    if (Array.isArray(container)) mutateList(random, container)
    else if (container !== undefined) mutateMembers(random, container)
  }
  return tree
}

function mutateList(random: Random, list: Tree[]): void {
  const at = random.below(list.length + 1)
  switch (random.below(3)) {
    case 0:
      list.splice(at, 0, hostileValue(random))
      break
    case 1:
      list.splice(at, 1)
      break
    default:
      list.splice(at, 0, ...list)
  }
}

function mutateMembers(random: Random, members: Members): void {
  const { entries } = members
  const at = random.below(entries.length)
  const entry = entries[at]
  if (entry === undefined || random.chance(0.2)) {
    entries.push([hostileName(random), hostileValue(random)])
    return
  }
  switch (random.below(6)) {
    case 0:
      entry[1] = hostileValue(random)
      break
    case 1:
      entry[1] = hostileText(random)
      break
    case 2:
      entries.splice(at, 1)
      break
    case 3:
      entries.push([entry[0], random.chance(0.5) ? entry[1] : hostileValue(random)])
      break
    case 4:
      entry[0] = hostileName(random)
      break
    default:
      entries.unshift(...entries.splice(at, 1))
  }
}

export function memberIn(tree: Members, name: string): Tree | undefined {
  return tree.entries.find(([member]) => member === name)?.[1]
}
