import type { Random } from '../../../support/random.ts'
import { Members, type Tree } from '../tree.ts'
import { mutate } from './events.ts'
import { hostileName, hostileText, hostileValue } from './values.ts'

const POINTERS = [
  '/metadata/labels/app',
  '/metadata/labels',
  '/metadata/labels/b~1c',
  '/metadata/annotations',
  '/metadata/annotations/example.com~1a',
  '/metadata/finalizers',
  '/metadata/finalizers/0',
  '/metadata/finalizers/-1',
  '/metadata/finalizers/-',
  '/metadata/finalizers/3',
  '/metadata/finalizers/99',
  '/metadata/ownerReferences/1',
  '/metadata/ownerReferences/0/uid',
  '/metadata/name',
  '/metadata',
  '/series/count',
  '/series',
  '/note',
  '/reason',
  '/__proto__/polluted',
  '/constructor/prototype/polluted',
  '/metadata/__proto__/polluted',
  '/metadata/labels/__proto__',
  '',
  '/',
  'metadata',
  '/metadata/labels/~2',
] as const
const OPERATIONS = ['add', 'remove', 'replace', 'move', 'copy', 'test'] as const

/** A JSON patch, most of whose operations can be applied. */
export function jsonPatch(random: Random): Tree {
  if (random.chance(0.05)) return hostileValue(random)
  return Array.from({ length: random.below(6) }, () => operation(random))
}

function operation(random: Random): Tree {
  if (random.chance(0.03)) return hostileValue(random)
  const op = random.chance(0.97) ? random.pick(OPERATIONS) : hostileText(random)
  const members: [string, Tree][] = [
    ['op', op],
    ['path', pointer(random)],
  ]
  if (op === 'move' || op === 'copy') members.push(['from', pointer(random)])
  else if (op !== 'remove') members.push(['value', operationValue(random)])
  const tree = new Members(members)
  return random.chance(0.05) ? mutate(random, tree) : tree
}

function pointer(random: Random): string {
  if (random.chance(0.9)) return random.pick(POINTERS)
  const names = Array.from({ length: random.below(5) }, () => hostileName(random))
  return `/${names.join('/')}`
}

function operationValue(random: Random): Tree {
  switch (random.below(4)) {
    case 0:
      return random.pick(['a', 'b', '1', 'example.com/four', 'x.y'])
    case 1:
      return Members.of({ app: random.pick(['a', 'z']), added: 'yes' })
    case 2:
      return ['example.com/one', 'example.com/four']
    default:
      return hostileValue(random)
  }
}

/** A merge patch of fields that may change, with nulls and unexpected values. */
export function mergePatch(random: Random): Tree {
  if (random.chance(0.05)) return hostileValue(random)
  const metadata = new Members()
  if (random.chance(0.7)) metadata.entries.push(['labels', texts(random)])
  if (random.chance(0.4)) metadata.entries.push(['annotations', texts(random)])
  if (random.chance(0.3)) metadata.entries.push(['finalizers', finalizers(random)])
  const patch = Members.of({ metadata })
  if (random.chance(0.2)) {
    patch.entries.push(['series', random.pick<Tree>([null, Members.of({ count: 9 })])])
  }
  return random.chance(0.5) ? mutate(random, patch) : patch
}

function texts(random: Random): Tree {
  if (random.chance(0.1)) return null
  return new Members(
    Array.from({ length: random.below(4) }, () => [
      random.chance(0.7) ? random.pick(['app', 'b/c', 'example.com/a', 'c']) : hostileName(random),
      random.chance(0.3) ? null : random.pick(['a', 'b', '', '1']),
    ]),
  )
}

function finalizers(random: Random): Tree {
  if (random.chance(0.1)) return null
  return Array.from({ length: random.below(4) }, () =>
    random.pick(['example.com/one', 'example.com/two', 'example.com/four']),
  )
}

const DIRECTIONS = [
  '$patch',
  '$retainKeys',
  '$setElementOrder/finalizers',
  '$setElementOrder/ownerReferences',
  '$deleteFromPrimitiveList/finalizers',
  '$deleteFromPrimitiveList/ownerReferences',
  '$setElementOrder/labels',
  '$setElementOrder/',
  '$deleteFromPrimitiveList',
] as const

/** A merge patch with directives of strategic merge. */
export function strategicPatch(random: Random): Tree {
  const patch = mergePatch(random)
  if (!(patch instanceof Members)) return patch
  const metadata = patch.entries.find(([name]) => name === 'metadata')?.[1]
  if (!(metadata instanceof Members)) return patch
  if (random.chance(0.4)) metadata.entries.push(['ownerReferences', owners(random)])
  for (let count = random.below(3); count > 0; count--) {
    const place = random.chance(0.8) ? metadata : patch
    place.entries.push([random.pick(DIRECTIONS), direction(random)])
  }
  return patch
}

function owners(random: Random): Tree {
  return Array.from({ length: random.below(4) }, () => {
    const owner = Members.of({ uid: random.pick(['1', '2', '3', '4']) })
    if (random.chance(0.3))
      owner.entries.push(['$patch', random.pick(['delete', 'replace', 'merge'])])
    if (random.chance(0.6)) owner.entries.push(['name', 'renamed'])
    return random.chance(0.1) ? hostileValue(random) : owner
  })
}

function direction(random: Random): Tree {
  switch (random.below(5)) {
    case 0:
      return random.pick(['replace', 'delete', 'merge', 'strange'])
    case 1:
      return ['labels', 'finalizers', 'name']
    case 2:
      return owners(random)
    case 3:
      return finalizers(random)
    default:
      return hostileValue(random)
  }
}
