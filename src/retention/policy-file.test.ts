import assert from 'node:assert/strict'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { silentLog } from '../lib/log/log.ts'
import { PolicyFile, readPolicy } from './policy-file.ts'

const HEAD = 'apiVersion: tidings.dev/v1alpha1\nkind: RetentionPolicy\n'
const hour = 3_600_000

describe('readPolicy', () => {
  test('reads all fields of rules and budgets', () => {
    const { rules, budgets } = readPolicy(
      `${HEAD}
rules:
- name: warnings
  cluster: prod
  namespace: [shop, billing]
  type: Warning
  reason: FailedScheduling
  kind: Pod
  controller: kubelet
  lifetime: 7d
- namespace: audit
  lifetime: never
- lifetime: 1h30m
budgets:
- name: namespaces
  per: Namespace
  cluster: prod
  namespace: shop
  events: 100k
  bytes: 200Mi
- per: Cluster
  bytes: 5000000
`,
      hour,
    )
    assert.deepEqual(rules, [
      {
        name: 'warnings',
        selector: {
          cluster: ['prod'],
          namespace: ['shop', 'billing'],
          type: ['Warning'],
          reason: ['FailedScheduling'],
          kind: ['Pod'],
          controller: ['kubelet'],
        },
        lifetime: 168 * hour,
      },
      { name: 'rule-2', selector: { namespace: ['audit'] }, lifetime: 'never' },
      { name: 'rule-3', selector: {}, lifetime: 1.5 * hour },
      { name: 'default', selector: {}, lifetime: hour },
    ])
    assert.deepEqual(budgets, [
      {
        name: 'namespaces',
        per: 'Namespace',
        cluster: ['prod'],
        namespace: ['shop'],
        events: 100_000,
        bytes: 200 * 1024 * 1024,
      },
      {
        name: 'budget-2',
        per: 'Cluster',
        cluster: undefined,
        namespace: undefined,
        events: undefined,
        bytes: 5_000_000,
      },
    ])
  })

  test('reads what history keeps', () => {
    const { history, rules } = readPolicy(
      `${HEAD}
history:
  lifetime: 90d
  rules:
  - name: payments
    cluster: prod
    namespace: [shop, billing]
    lifetime: never
  - reason: [Pulling, Pulled]
    controller: kubelet
    archive: false
  - type: Warning
    lifetime: 52w
`,
      hour,
    )
    assert.equal(rules.length, 1)
    assert.deepEqual(history.rules, [
      {
        name: 'payments',
        selector: { cluster: ['prod'], namespace: ['shop', 'billing'] },
        keep: 'forever',
      },
      {
        name: 'rule-2',
        selector: { reason: ['Pulling', 'Pulled'], controller: ['kubelet'] },
        keep: 'never-archived',
      },
      { name: 'rule-3', selector: { type: ['Warning'] }, keep: 52 * 168 * hour },
      { name: 'default', selector: {}, keep: 90 * 24 * hour },
    ])
  })

  test('history keeps a year of what the file does not mention, or nothing', () => {
    const defaultIn = (text: string) => readPolicy(HEAD + text, hour).history.rules.at(-1)?.keep
    assert.equal(defaultIn('rules: [{lifetime: 2h}]'), 365 * 24 * hour)
    assert.equal(defaultIn('history: {}'), 365 * 24 * hour)
    assert.equal(defaultIn('history: {archive: false}'), 'never-archived')
  })

  const wrong: readonly (readonly [string, RegExp])[] = [
    ['', /^Error: has neither rules, budgets nor history/],
    ['rules: []\nbudgets: []', /^Error: has neither rules, budgets nor history/],
    ['rules: x', /^Error: rules: must be a list/],
    ['rule: []', /^Error: rule: unknown field; known fields are apiVersion, kind, rules, budgets/],
    ['rules: [{}]', /^Error: rules\[0\]\.lifetime: is missing: write a duration such as 6h/],
    ['rules: [{lifetime: 5}]', /^Error: rules\[0\]\.lifetime: 5 has no unit: write 5h or 5d/],
    ['rules: [{lifetime: 5y}]', /^Error: rules\[0\]\.lifetime: "5y" has an unknown unit/],
    ['rules: [{lifetime: "30"}]', /^Error: rules\[0\]\.lifetime: 30 has no unit: write 30h/],
    ['rules: [{lifetime: 1ms}]', /^Error: rules\[0\]\.lifetime: "1ms" is not between 1s and/],
    ['rules: [{lifetime: -1h}]', /^Error: rules\[0\]\.lifetime: "-1h" is not between/],
    ['rules: [{lifetime: 4000d}]', /^Error: rules\[0\]\.lifetime: "4000d" is not between/],
    [
      'rules: [{ttl: 1h}]',
      /^Error: rules\[0\]\.ttl: unknown field; known fields are name, cluster/,
    ],
    ['rules: [{lifetime: 1h}, {lifetime: 2h}]', /^Error: rules\[1\]: has no effect: rules\[0\]/],
    ['rules: [{type: warning, lifetime: 1h}]', /^Error: rules\[0\]\.type: "warning" is not one of/],
    ['rules: [{kind: [], lifetime: 1h}]', /^Error: rules\[0\]\.kind: is empty/],
    ['rules: [{kind: [a, ""], lifetime: 1h}]', /^Error: rules\[0\]\.kind\[1\]: must not be empty/],
    ['rules: [{namespace: A, lifetime: 1h}]', /^Error: rules\[0\]\.namespace: "A": a lowercase/],
    ['rules: [{name: A, lifetime: 1h}]', /^Error: rules\[0\]\.name: "A": a lowercase/],
    [
      'rules: [{name: default, lifetime: 1h}]',
      /^Error: rules\[0\]\.name: "default" is reserved for/,
    ],
    [
      'rules: [{name: rule-2, kind: a, lifetime: 1h}, {lifetime: 1h}]',
      /^Error: rules\[1\]\.name: "rule-2" is used twice/,
    ],
    [
      `rules: [${'{kind: a, lifetime: 1h},'.repeat(101)}]`,
      /^Error: rules: has more than 100 entries/,
    ],
    ['budgets: [{events: 1}]', /^Error: budgets\[0\]\.per: is missing: write Namespace or Cluster/],
    [
      'budgets: [{per: Pod, events: 1}]',
      /^Error: budgets\[0\]\.per: "Pod" is not one of Namespace/,
    ],
    ['budgets: [{per: Cluster}]', /^Error: budgets\[0\]: needs events, bytes or both/],
    [
      'budgets: [{per: Cluster, namespace: a, events: 1}]',
      /^Error: budgets\[0\]\.namespace: needs per: Namespace/,
    ],
    ['budgets: [{per: Cluster, events: 0}]', /^Error: budgets\[0\]\.events: 0 is not a number/],
    ['budgets: [{per: Cluster, events: 1x}]', /^Error: budgets\[0\]\.events: "1x" is not a number/],
    [
      'budgets: [{per: Cluster, bytes: 200MB}]',
      /bytes: "200MB" is not a number of bytes: write a whole number above 0, such as 500k, 200Mi/,
    ],
    ['rules: [{namespace: team-*, lifetime: 1h}]', /namespace: "team-\*": patterns are not supp/],
    ['budgets: [{per: Cluster, bytes: 1.5Gi}]', /^Error: budgets\[0\]\.bytes: "1\.5Gi" is not a/],
    ['budgets: [{per: Cluster, bytes: 5Mb}]', /^Error: budgets\[0\]\.bytes: "5Mb" is not a number/],
    ['budgets: [{per: Cluster, events: [7]}]', /^Error: budgets\[0\]\.events: \[7\] is not a/],
    ['budgets: [{per: Cluster, events: 0x10}]', /^Error: budgets\[0\]\.events: "0x10" is not a/],
    ['budgets: [{per: Cluster, bytes: 0o17}]', /^Error: budgets\[0\]\.bytes: "0o17" is not a/],
    ['budgets: [{per: Cluster, bytes: -1}]', /^Error: budgets\[0\]\.bytes: -1 is not a number/],
    ['history: 90d', /^Error: history: must be a mapping/],
    [
      'history: {keep: 90d}',
      /^Error: history\.keep: unknown field; known fields are lifetime, archive/,
    ],
    ['history: {lifetime: 23h}', /^Error: history\.lifetime: "23h" is not between 1d and 3650d/],
    ['history: {lifetime: 90}', /^Error: history\.lifetime: 90 has no unit: write 90h or 90d/],
    ['history: {archive: true}', /^Error: history\.archive: true is not false: give what is arch/],
    [
      'history: {archive: false, lifetime: 90d}',
      /^Error: history\.archive: what is not archived has no lifetime: remove one of them/,
    ],
    [
      'history: {rules: [{type: Normal}]}',
      /^Error: history\.rules\[0\]\.lifetime: is missing: write a duration such as 90d.*archive: fa/,
    ],
    [
      'history: {rules: [{lifetime: 90d}, {archive: false}]}',
      /^Error: history\.rules\[1\]: has no effect: history\.rules\[0\] matches every event/,
    ],
    [
      'history: {rules: [{name: a, type: Normal, lifetime: 90d}, {name: a, archive: false}]}',
      /^Error: history\.rules\[1\]\.name: "a" is used twice/,
    ],
    [
      `history: {rules: [${'{kind: a, archive: false},'.repeat(101)}]}`,
      /^Error: history\.rules: has more than 100 entries/,
    ],
  ]
  for (const [text, message] of wrong) {
    test(`rejects ${text.slice(0, 60)}`, () => {
      assert.throws(() => readPolicy(HEAD + text, hour), message)
    })
  }

  test('rejects another kind of file', () => {
    const text = HEAD.replace('RetentionPolicy', 'ClusterConfiguration')
    assert.throws(() => readPolicy(text, hour), /set apiVersion: .* and kind: RetentionPolicy/)
  })
})

test('PolicyFile: uses a changed file unless it is invalid', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-policy-'))
  context.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'policy.yaml')
  const write = (lifetime: string) =>
    writeFile(path, `${HEAD}rules: [{type: Normal, lifetime: ${lifetime}}]\n`)
  const options = { lifetime: hour, log: silentLog }
  await assert.rejects(PolicyFile.open(path, options), /ENOENT/)
  await write('soon')
  await assert.rejects(PolicyFile.open(path, options), /policy\.yaml: rules\[0\]\.lifetime: "soon"/)
  await write('2h')
  const polls: boolean[] = []
  const file = await PolicyFile.open(path, { ...options, onPoll: (usable) => polls.push(usable) })
  context.after(() => file.stop())
  let changes = 0
  file.onChange(() => changes++)
  const untilLook = async (isUsable: boolean) => {
    polls.length = 0
    while (!polls.includes(isUsable)) await sleep(20)
  }
  assert.equal(file.policy.shortestMs, hour)
  assert.equal(file.policy.longestMs, 2 * hour)
  await write('-1s')
  await untilLook(false)
  assert.deepEqual([changes, file.policy.longestMs], [0, 2 * hour])
  await write('3h')
  await untilLook(true)
  assert.deepEqual([changes, file.policy.longestMs], [1, 3 * hour])
})

test('PolicyFile: does not use a file that is being written', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-policy-'))
  context.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'policy.yaml')
  const text = `${HEAD}budgets:\n- per: Namespace\n  events: 500000\n`
  const options = { lifetime: hour, log: silentLog }
  await writeFile(path, text.slice(0, -6))
  await assert.rejects(
    PolicyFile.open(path, options),
    /policy\.yaml: .*no final newline.*half-writ/,
  )
  await writeFile(path, text)
  const file = await PolicyFile.open(path, options)
  context.after(() => file.stop())
  const seen: (number | undefined)[] = []
  file.onChange(() => seen.push(file.policy.budgets[0]?.events))
  // Stays unchanged for longer than the poll interval.
  await writeFile(path, text.slice(0, -6))
  await sleep(3_500)
  assert.deepEqual(seen, [])
  // Each poll finds a valid policy, but a different one from the previous poll.
  for (let events = 1; events < 30; events++) {
    await writeFile(`${path}.new`, text.replace('500000', String(events)))
    await rename(`${path}.new`, path)
    await sleep(100)
  }
  assert.deepEqual(seen, [])
  while (seen.length === 0) await sleep(20)
  assert.deepEqual(seen, [29])
})
