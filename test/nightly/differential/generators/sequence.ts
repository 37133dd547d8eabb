/** Sequences of requests: the same seed and number give the same sequence. */
import { Random } from '../../../support/random.ts'
import { GROUPS, type GroupName, type Step, type Verb } from '../step.ts'
import { remove, removeCollection } from './deletes.ts'
import { get, list, watch } from './reads.ts'
import { NAMES } from './values.ts'
import {
  apply,
  create,
  goodCreate,
  jsonPatch,
  mergePatch,
  strategicPatch,
  update,
} from './writes.ts'

type Make = (random: Random, group: GroupName) => Step

/** The relative frequency of each verb. */
const WEIGHTS: readonly (readonly [Verb, number, Make])[] = [
  ['create', 16, create],
  ['update', 14, update],
  ['json-patch', 11, jsonPatch],
  ['merge-patch', 9, mergePatch],
  ['strategic-patch', 10, strategicPatch],
  ['apply', 9, apply],
  ['delete', 8, remove],
  ['delete-collection', 4, removeCollection],
  ['get', 10, get],
  ['list', 13, list],
  ['watch', 2, watch],
]

const STEPS = 12
const OWNED_SHARE = 0.12

export interface SequenceOptions {
  readonly seed: number
  /** All verbs by default. */
  readonly verbs?: ReadonlySet<Verb> | undefined
}

export function sequenceAt({ seed, verbs }: SequenceOptions, index: number): readonly Step[] {
  const random = new Random(Math.imul(seed, 1_000_003) + index)
  if (verbs === undefined && random.chance(OWNED_SHARE)) return ownedSequence(random)
  const anyGroup = (): GroupName => random.pick(GROUPS)
  const choices = WEIGHTS.filter(([verb]) => verbs?.has(verb) ?? true)
  // The version of the first list is where watches begin.
  const steps: Step[] = [read('list', anyGroup(), '')]
  for (const name of NAMES) {
    if (random.chance(0.7)) steps.push(goodCreate(random, anyGroup(), name))
  }
  for (let count = 0; count < STEPS; count++)
    steps.push(weighted(random, choices)(random, anyGroup()))
  return [...steps, ...inspection(random)]
}

/** Applies, and writes by one other manager: ownership is compared after each. */
function ownedSequence(random: Random): readonly Step[] {
  const group = random.pick(GROUPS)
  const steps = Array.from({ length: STEPS }, (_, at): Step => {
    if (at < 3 || random.chance(0.6)) return apply(random, group)
    if (random.chance(0.4)) return get(random, group)
    const make = random.pick([update, mergePatch, strategicPatch, jsonPatch])
    const step = make(random, group)
    const query = step.query.filter(([name]) => name !== 'fieldManager')
    return { ...step, query: [...query, ['fieldManager', 'other']] }
  })
  return steps.map((step) => ({ ...step, comparesOwners: true }))
}

function weighted(random: Random, choices: typeof WEIGHTS): Make {
  const total = choices.reduce((sum, [, weight]) => sum + weight, 0)
  let left = random.next() * total
  for (const [, weight, make] of choices) {
    left -= weight
    if (left < 0) return make
  }
  return choices[0]?.[2] ?? get
}

/** The final state, in every format and through both groups. */
function inspection(random: Random): readonly Step[] {
  return GROUPS.flatMap((group) => {
    const name = random.pick(NAMES)
    return [
      read('list', group, ''),
      read('list', group, '', 'application/json;as=Table;v=v1;g=meta.k8s.io'),
      read('list', group, '', 'application/vnd.kubernetes.protobuf'),
      read('get', group, name, 'application/yaml'),
    ]
  })
}

function read(verb: 'get' | 'list', group: GroupName, at: string, accept?: string): Step {
  return { verb, group, at, query: [], headers: accept === undefined ? {} : { accept } }
}
