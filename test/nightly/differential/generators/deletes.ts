/** Requests that delete an event or a collection. */
import type { Random } from '../../../support/random.ts'
import { Members, Raw, type Tree } from '../../fuzz/tree.ts'
import type { Body, GroupName, Step } from '../step.ts'
import { setMember } from './events.ts'
import { selection } from './reads.ts'
import { NAMES } from './values.ts'
import { answerForm, type Query } from './writes.ts'
import { yamlText } from './yaml.ts'

export function remove(random: Random, group: GroupName): Step {
  const name = random.pick(NAMES)
  const step: Step = {
    verb: 'delete',
    group,
    at: name,
    query: [],
    headers: answerForm(random, 0.1),
  }
  return { ...step, ...deletion(random, name) }
}

export function removeCollection(random: Random, group: GroupName): Step {
  const query = random.chance(0.6) ? selection(random, group) : []
  if (random.chance(0.2)) query.push(['limit', random.pick(['1', '2', '0', '-1', 'x'])])
  if (random.chance(0.1)) query.push(['resourceVersion', random.pick(['0', '', 'abc'])])
  const headers = answerForm(random, 0.1)
  const step: Step = { verb: 'delete-collection', group, at: '', query, headers }
  if (random.chance(0.5)) return step
  const { query: more = [], ...sentOptions } = deletion(random, 'n0')
  return { ...step, ...sentOptions, query: [...query, ...more] }
}

/** Options of a delete: in the body in one of its forms, or in the query. */
function deletion(random: Random, name: string): Partial<Step> {
  const options = new Members()
  if (random.chance(0.3)) {
    setMember(options, 'kind', random.pick(['DeleteOptions', 'DeleteOptions', 'Event', '']))
    setMember(options, 'apiVersion', random.pick(['v1', 'events.k8s.io/v1', 'meta.k8s.io/v1']))
  }
  for (let count = random.below(3); count > 0; count--) setMember(options, ...option(random, name))
  if (random.chance(0.4)) return { query: optionsQuery(options) }
  const headers = { ...answerForm(random, 0.1) }
  if (random.chance(0.15)) {
    const body: Body = { form: 'text', text: yamlText(random, options) }
    return { headers: { ...headers, 'content-type': 'application/yaml' }, body }
  }
  const body: Body = random.chance(0.05)
    ? { form: 'json', tree: random.pick<Tree>([new Raw(''), new Raw('{'), [], null, 'x']) }
    : { form: 'json', tree: options }
  return { headers: { ...headers, 'content-type': 'application/json' }, body }
}

function option(random: Random, name: string): [string, Tree] {
  return random.pick<() => [string, Tree]>([
    () => ['preconditions', precondition(random, name)],
    () => ['preconditions', precondition(random, name)],
    () => ['gracePeriodSeconds', random.pick<Tree>([0, 1, 30, -1, null, '1'])],
    () => [
      'propagationPolicy',
      random.pick<Tree>(['Orphan', 'Background', 'Foreground', 'bad', '', null]),
    ],
    () => ['orphanDependents', random.pick<Tree>([true, false, null, 'x'])],
    () => [
      'ignoreStoreReadErrorWithClusterBreakingPotential',
      random.pick<Tree>([true, true, false, null, 'x']),
    ],
    () => ['dryRun', random.pick<Tree>([['All'], ['All'], [], ['bad'], 'All', ['All', 'All']])],
    () => ['bogus', 1],
  ])()
}

function precondition(random: Random, name: string): Tree {
  return random.pick<Tree>([
    Members.of({ uid: `@{uid ${name}}` }),
    Members.of({ uid: 'zzz' }),
    Members.of({ uid: '' }),
    Members.of({ uid: null }),
    Members.of({ resourceVersion: `@{rv ${name}}` }),
    Members.of({ resourceVersion: `@{old ${name}}` }),
    Members.of({ resourceVersion: '' }),
    Members.of({ resourceVersion: 'abc' }),
    Members.of({ uid: `@{uid ${name}}`, resourceVersion: `@{rv ${name}}` }),
    new Members(),
    null,
    Members.of({ bogus: 1 }),
  ])
}

function optionsQuery(options: Members): Query {
  return options.entries.flatMap(([name, value]): Query => {
    if (value instanceof Members) {
      return value.entries.map(([member, text]) => [member, String(text ?? '')])
    }
    if (Array.isArray(value)) return value.map((entry) => [name, String(entry)])
    return [[name, String(value)]]
  })
}
