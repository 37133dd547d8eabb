import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { silentLog } from '../lib/log/log.ts'
import { readClusters } from './cluster-sections.ts'
import { type ClusterConfig, ClustersFile } from './clusters-file.ts'

const HEAD = 'apiVersion: tidings.dev/v1alpha1\nkind: ClusterConfiguration\n'
const file = (clusters: unknown): string => `${HEAD}clusters: ${JSON.stringify(clusters)}\n`

describe('readClusters', () => {
  const read = (clusters: unknown) => readClusters(file(clusters), '/etc/tidings/clusters.yaml')

  test('reads all fields of a cluster, with paths relative to the file', () => {
    const text = `${HEAD}clusters:
- name: prod-eu
  kubeconfig: prod-eu.kubeconfig
  mirror:
    namespaces: [a, b]
    deletes: explicit
    originEventTTL: 3h
    identity: eu-2024
    owners: true
  authorization: origin
  tokens: { issuers: [https://eu, https://sso], opaque: true }
- name: prod-us
  kubeconfig: /elsewhere/config
  context: us
  mirror: { owners: false }
- name: local
`
    assert.deepEqual(readClusters(text, '/etc/tidings/clusters.yaml'), [
      {
        name: 'prod-eu',
        kubeconfig: { path: '/etc/tidings/prod-eu.kubeconfig', context: undefined },
        mirror: {
          namespaces: ['a', 'b'],
          deletes: 'explicit',
          originTtlMs: 10_800_000,
          identity: 'eu-2024',
          owners: true,
        },
        authorization: 'origin',
        tokens: {
          issuers: ['https://eu', 'https://sso'],
          audiences: ['https://eu', 'https://sso'],
          opaque: true,
        },
      },
      {
        name: 'prod-us',
        kubeconfig: { path: '/elsewhere/config', context: 'us' },
        mirror: { namespaces: undefined, deletes: 'never', originTtlMs: 3_600_000 },
        authorization: 'rbac',
      },
      { name: 'local', kubeconfig: undefined, mirror: undefined, authorization: 'rbac' },
    ])
  })

  const withTokens = (tokens: unknown) => [
    { name: 'a', kubeconfig: 'k', authorization: 'origin', tokens },
  ]
  const mirrored = (mirror: unknown) => [{ name: 'a', kubeconfig: 'k', mirror }]
  const wrong: readonly (readonly [unknown, RegExp])[] = [
    ['x', /^Error: clusters: must be a list/],
    [[1], /^Error: clusters\[0\]: must be a mapping/],
    [[{}], /^Error: clusters\[0\]\.name: is missing/],
    [[{ name: 7 }], /^Error: clusters\[0\]\.name: 7 is not a string/],
    [[{ name: '*' }], /^Error: clusters\[0\]\.name: "\*": a lowercase RFC 1123 label/],
    [[{ name: 'a.b' }], /^Error: clusters\[0\]\.name: "a\.b": must not contain dots/],
    [[{ name: 'a'.repeat(64) }], /clusters\[0\]\.name: .*no more than 63/],
    [[{ name: 'a' }, { name: 'a' }], /^Error: clusters\[1\]\.name: is used twice/],
    [[{ name: 'a', kubeConfig: 'k' }], /^Error: clusters\[0\]\.kubeConfig: unknown field; known/],
    [[{ name: 'a', kubeconfig: '' }], /^Error: clusters\[0\]\.kubeconfig: must not be empty/],
    [[{ name: 'a', mirror: {} }], /^Error: clusters\[0\]\.kubeconfig: is missing: mirror needs it/],
    [[{ name: 'a', context: 'x' }], /kubeconfig: is missing: context needs it/],
    [[{ name: 'a', authorization: 'origin' }], /kubeconfig: is missing: authorization needs it/],
    [
      [{ name: 'a', authorization: 'Origin' }],
      /authorization: "Origin" is not one of rbac, origin/,
    ],
    [[{ name: 'a', tokens: {} }], /clusters\[0\]\.tokens: needs authorization: origin/],
    [withTokens([]), /clusters\[0\]\.tokens: must be a mapping/],
    [
      withTokens({ issuer: 'x' }),
      /tokens\.issuer: unknown field; known fields are issuers, audiences/,
    ],
    [withTokens({ issuers: 'x' }), /tokens\.issuers: must be a list/],
    [withTokens({ audiences: [1] }), /tokens\.audiences\[0\]: 1 is not a string/],
    [withTokens({ issuers: Array(21).fill('x') }), /tokens\.issuers: has more than 20/],
    [withTokens({ opaque: 'yes' }), /tokens\.opaque: must be true or false/],
    [mirrored(null), /^Error: clusters\[0\]\.mirror: must be a mapping \(key: value\)/],
    [mirrored({ namespace: 'a' }), /^Error: clusters\[0\]\.mirror\.namespace: unknown field/],
    [mirrored({ namespaces: [] }), /mirror\.namespaces: is empty: remove it to mirror all/],
    [mirrored({ namespaces: null }), /mirror\.namespaces: must be a list/],
    [mirrored({ namespaces: ['a', 'A'] }), /mirror\.namespaces\[1\]: "A": a lowercase/],
    [mirrored({ namespaces: ['a', 'a'] }), /mirror\.namespaces\[1\]: is listed twice/],
    [mirrored({ namespaces: Array.from({ length: 101 }, (_, at) => `n${at}`) }), /more than 100/],
    [mirrored({ deletes: 'always' }), /mirror\.deletes: "always" is not one of never, explicit/],
    [mirrored({ originEventTTL: '1d' }), /mirror\.originEventTTL: "1d" counts in days/],
    [mirrored({ originEventTTL: '1s' }), /mirror\.originEventTTL: must be from 1m to/],
    [mirrored({ identity: 7 }), /mirror\.identity: 7 is not a string/],
    [mirrored({ identity: 'x'.repeat(254) }), /mirror\.identity: is longer than 253 bytes/],
    [mirrored({ owners: 'yes' }), /mirror\.owners: must be true or false/],
    [mirrored({ originEventTTL: 3600 }), /mirror\.originEventTTL: 3600 is not a string/],
    [Array.from({ length: 201 }, (_, at) => ({ name: `c${at}` })), /clusters: has more than 200/],
  ]
  for (const [clusters, expected] of wrong) {
    const shown = JSON.stringify(clusters).slice(0, 100)
    test(`rejects ${shown}: ${expected}`, () => {
      assert.throws(() => read(clusters), expected)
    })
  }

  for (const [text, expected] of [
    ['', /the file is empty/],
    [`${file([])}---\n${file([])}`, /more than one document/],
    ['kind: Clusters\n', /set apiVersion: tidings\.dev\/v1alpha1 and kind: ClusterConfiguration/],
    [`${HEAD}clusters: []\nextra: 1\n`, /^Error: extra: unknown field/],
    [HEAD, /^Error: clusters: must be a list/],
  ] as const) {
    test(`rejects ${JSON.stringify(text)}: ${expected}`, () => {
      assert.throws(() => readClusters(text, '/f'), expected)
    })
  }
})

describe('ClustersFile', () => {
  let folder: string
  let path: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-clusters-'))
    path = join(folder, 'clusters.yaml')
  })
  after(() => rm(folder, { recursive: true }))

  const writeKubeconfig = (name: string, server: string, user: object = {}) =>
    writeFile(
      join(folder, name),
      JSON.stringify({
        kind: 'Config',
        'current-context': 'x',
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        clusters: [{ name: 'c', cluster: { server } }],
        users: [{ name: 'u', user }],
      }),
    )

  /** Opens the file with timers of the test; `polls` lets them run until a condition holds. */
  const opened = async (context: TestContext, clusters: unknown) => {
    await writeFile(path, file(clusters))
    context.mock.timers.enable({ apis: ['setInterval'] })
    const lines: string[] = []
    const outcomes: boolean[] = []
    const line = (msg: string, fields: object = {}): void => {
      const err = 'err' in fields ? ` ${String(fields.err)}` : ''
      lines.push(`${msg}${err}`)
    }
    const log = { ...silentLog, info: line, warn: line }
    const found = await ClustersFile.open(path, { log, onPoll: (usable) => outcomes.push(usable) })
    context.after(() => found.stop())
    let changes = 0
    found.onChange(() => {
      changes += 1
    })
    const polls = async (holds: () => boolean): Promise<void> => {
      lines.length = 0
      outcomes.length = 0
      changes = 0
      const deadline = Date.now() + 10_000
      while (!holds()) {
        assert.ok(Date.now() < deadline, `${holds}`)
        context.mock.timers.tick(1000)
        await sleep(5)
      }
    }
    return { found, lines, outcomes, polls, changes: () => changes }
  }
  const tokenOf = (config: ClusterConfig | undefined) => config?.kubeconfig?.().token

  test('uses a renewed token without replacing the cluster', async (context) => {
    await writeFile(join(folder, 'token'), 'one')
    await writeKubeconfig('a', 'https://a', { tokenFile: 'token' })
    const { found, polls, changes } = await opened(context, [{ name: 'a', kubeconfig: 'a' }])
    const first = found.clusters.get('a')
    assert.equal(tokenOf(first), 'one')
    await writeFile(join(folder, 'token'), 'two')
    await polls(() => tokenOf(first) === 'two')
    assert.equal(found.clusters.get('a'), first)
    assert.equal(changes(), 0)
  })

  test('replaces only the cluster whose address or section changes', async (context) => {
    await writeKubeconfig('a', 'https://a')
    await writeKubeconfig('b', 'https://b')
    const { found, polls, changes } = await opened(context, [
      { name: 'a', kubeconfig: 'a' },
      { name: 'b', kubeconfig: 'b' },
    ])
    const { a, b } = Object.fromEntries(found.clusters)
    await writeKubeconfig('a', 'https://elsewhere')
    await polls(() => changes() === 1)
    assert.notEqual(found.clusters.get('a'), a)
    assert.equal(found.clusters.get('a')?.kubeconfig?.().url.host, 'elsewhere')
    assert.equal(found.clusters.get('b'), b)
    const moved = found.clusters.get('a')
    const mirrored = { name: 'b', kubeconfig: 'b', mirror: {} }
    await writeFile(path, file([mirrored, { name: 'a', kubeconfig: 'a' }, { name: 'c' }]))
    await polls(() => changes() === 1)
    assert.deepEqual([...found.clusters.keys()], ['b', 'a', 'c'])
    assert.equal(found.clusters.get('a'), moved)
    assert.notEqual(found.clusters.get('b'), b)
    await writeFile(path, file([{ name: 'c' }]))
    await polls(() => changes() === 1)
    assert.deepEqual([...found.clusters.keys()], ['c'])
  })

  test('leaves the clusters unchanged while the file is invalid', async (context) => {
    const { found, polls, changes, lines, outcomes } = await opened(context, [{ name: 'a' }])
    const { clusters } = found
    await writeFile(path, file([{ name: 'b', mirror: {} }]))
    await polls(() => outcomes.length === 5)
    assert.equal(found.clusters, clusters)
    assert.equal(changes(), 0)
    assert.equal(lines.length, 1)
    assert.match(lines[0] ?? '', /not reloaded Error: .*clusters\.yaml: clusters\[0\]\.kubeconfig/)
    assert.ok(outcomes.every((usable) => !usable))
    await writeFile(path, file([{ name: 'a' }]))
    await polls(() => outcomes.at(-1) === true)
    assert.deepEqual(lines, ['Clusters file valid again, unchanged'])
  })

  test('leaves other clusters unaffected by an invalid kubeconfig', async (context) => {
    await writeKubeconfig('a', 'https://a', { token: 'a1' })
    await writeKubeconfig('b', 'https://b', { token: 'b1' })
    const { found, polls, lines, outcomes } = await opened(context, [
      { name: 'a', kubeconfig: 'a' },
      { name: 'b', kubeconfig: 'b' },
    ])
    await writeKubeconfig('a', 'https://a', { exec: {} })
    await writeKubeconfig('b', 'https://b', { token: 'b2' })
    await polls(() => lines.length === 2 && outcomes.at(-1) === false)
    assert.equal(tokenOf(found.clusters.get('a')), 'a1')
    assert.equal(tokenOf(found.clusters.get('b')), 'b2')
    assert.ok(lines.some((line) => /not reloaded .*user\.exec is not supported/.test(line)))
    await writeFile(path, file([{ name: 'b', kubeconfig: 'b' }]))
    await polls(() => outcomes.at(-1) === true)
  })

  test('names both files and the field when a kubeconfig is invalid at start', async () => {
    await writeKubeconfig('a', 'https://a', { exec: {} })
    await writeFile(path, file([{ name: 'x' }, { name: 'a', kubeconfig: 'a' }]))
    await assert.rejects(
      ClustersFile.open(path, { log: silentLog }),
      /clusters\.yaml: clusters\[1\]\.kubeconfig: .*\/a: user\.exec is not supported/,
    )
  })

  test('allows plain HTTP to this host for mirrors, but not for authorization', async () => {
    await writeKubeconfig('a', 'http://127.0.0.1:8080')
    await writeFile(path, file([{ name: 'a', kubeconfig: 'a', mirror: {} }]))
    ;(await ClustersFile.open(path, { log: silentLog })).stop()
    await writeFile(path, file([{ name: 'a', kubeconfig: 'a', authorization: 'origin' }]))
    await assert.rejects(ClustersFile.open(path, { log: silentLog }), /must use https/)
  })
})
