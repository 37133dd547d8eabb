import assert from 'node:assert/strict'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { labelOf, openUserContext } from './user-kubeconfig.ts'

describe('openUserContext', () => {
  let folder: string
  let first: string
  let second: string

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-user-'))
    await mkdir(join(folder, 'other'))
    first = join(folder, 'config')
    second = join(folder, 'other', 'config')
    await write(first, {
      'current-context': 'prod',
      contexts: [{ name: 'prod', context: { cluster: 'c', user: 'u' } }],
      clusters: [
        { name: 'c', cluster: { server: 'https://c:6443', 'certificate-authority': 'ca.crt' } },
      ],
      users: [{ name: 'u', user: { token: 'first' } }],
    })
    await write(second, {
      'current-context': 'test',
      contexts: [
        { name: 'test', context: { cluster: 'd', user: 'e' } },
        { name: 'prod', context: { cluster: 'never', user: 'never' } },
      ],
      clusters: [{ name: 'd', cluster: { server: 'https://d' } }],
      users: [
        {
          name: 'e',
          user: {
            exec: {
              command: './plugin',
              args: ['a b'],
              env: [{ name: 'X', value: 'y' }],
              provideClusterInfo: true,
            },
          },
        },
        { name: 'u', user: { token: 'second' } },
      ],
    })
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  const write = (path: string, config: object): Promise<void> =>
    writeFile(path, JSON.stringify({ apiVersion: 'v1', kind: 'Config', ...config }))
  const open = (context?: string, files: readonly string[] = [first, second]) =>
    openUserContext({ files, context, folder, onFailure: () => {} })
  const written = async (path: string) => JSON.parse(await readFile(path, 'utf8'))
  const plugin = async (script: string): Promise<void> => {
    const path = join(folder, 'other', 'plugin')
    await writeFile(path, `#!/bin/sh\n${script}\n`)
    await chmod(path, 0o700)
  }

  test('uses the current context of the first file, with absolute paths', async () => {
    const opened = await open()
    assert.deepEqual(
      [opened.context, opened.server, opened.clusterName],
      ['prod', 'https://c:6443', 'prod'],
    )
    const config = await written(opened.kubeconfig)
    assert.deepEqual(config.users[0].user, { token: 'first' })
    assert.equal(config.clusters[0].cluster['certificate-authority'], join(folder, 'ca.crt'))
  })

  test('ignores missing files like kubectl, unless all are missing', async () => {
    assert.equal((await open(undefined, [join(folder, 'none'), first])).context, 'prod')
    await assert.rejects(open(undefined, [join(folder, 'none')]), /set KUBECONFIG or --kubeconfig/)
  })

  test('lists the known contexts when one is unknown', async () => {
    await assert.rejects(open('nope'), /no context "nope"; it has: prod, test, prod/)
  })

  test('writes the token of a program to a file', async () => {
    await plugin(
      `test "$1" = "a b" && test "$X" = y && case "$KUBERNETES_EXEC_INFO" in *https://d*) echo '{"status":{"token":"of-plugin"}}';; esac`,
    )
    const opened = await open('test')
    const { users } = await written(opened.kubeconfig)
    assert.equal(await readFile(users[0].user.tokenFile, 'utf8'), 'of-plugin')
    opened.stop()
  })

  test('includes the hint of the kubeconfig when a program does not exist', async () => {
    await write(first, {
      'current-context': 'gke',
      contexts: [{ name: 'gke', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server: 'https://c' } }],
      users: [{ name: 'u', user: { exec: { command: './none', installHint: 'install none' } } }],
    })
    const before = activeTimers()
    await assert.rejects(
      open(),
      /none, which provides credentials, failed: .*ENOENT.*\ninstall none/,
    )
    assert.equal(activeTimers(), before, 'a timer remains')
  })

  test('names a program that fails or prints no credentials', async () => {
    for (const [script, reason] of [
      ['exit 3', /plugin, which provides credentials, failed: it exited with code 3/],
      ['echo hello', /it did not print JSON/],
      [`echo '{"status":{}}'`, /it printed no token and no certificate/],
      ['yes', /it printed too much/],
    ] as const) {
      await plugin(script)
      await assert.rejects(open('test'), reason)
    }
  })
})

test('labelOf: turns the name of a context into a DNS label', () => {
  assert.equal(labelOf('prod'), 'prod')
  assert.equal(labelOf('arn:aws:eks:eu-west-1:123456789012:cluster/Prod_EU'), 'prod-eu')
  assert.equal(labelOf('gke_my-project_europe-west1_prod'), 'gke-my-project-europe-west1-prod')
  assert.equal(labelOf('kubernetes-admin@kind'), 'kind')
  assert.equal(labelOf('___'), 'origin')
  assert.match(labelOf('x'.repeat(100)), /^x{63}$/)
})

/** Counts the timers of the whole process, which other unit tests share. */
function activeTimers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
}
