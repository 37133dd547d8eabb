/** Follows the README and the tutorials literally, as a new user would, with the release archive. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { etcdBinary } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import {
  KUBE_ADMIN_TOKEN,
  KubeApiserver,
  kubeApiserverBinary,
} from '../../support/kube-apiserver.ts'
import { cannotFollow, Follower, kubectlBinary } from './follower.ts'

const root = join(import.meta.dirname, '../../..')
const release = join(root, 'release')
const TUTORIALS = 'docs/tutorials'
/** Those that begin with the archive, and those that need `tidings` on the PATH. */
const WITH_ARCHIVE = ['README.md', `${TUTORIALS}/first-event.md`]
const WITH_PROGRAM = [`${TUTORIALS}/last-tuesday.md`, `${TUTORIALS}/on-call-night.md`]
/** Those that use the usual ports, which may be taken here. */
const WITH_OWN_NETWORK = [
  'docs/how-to/back-up-and-restore.md',
  'docs/how-to/history.md',
  'docs/how-to/rotate.md',
  'docs/how-to/write-roles.md',
]
const WITH_CLUSTER = [`${TUTORIALS}/a-week-of-events.md`]

// Most of a reader's time is waiting.
describe('followed literally', { skip: cannotFollow, concurrency: 3 }, () => {
  let unpacked: string
  let programs: readonly string[]

  before(async () => {
    unpacked = await mkdtemp(join(tmpdir(), 'tidings-unpacked-'))
    execFileSync('tar', ['-xzf', archive(), '-C', unpacked])
    programs = readdirSync(unpacked).map((folder) => join(unpacked, folder, 'bin'))
  })
  after(() => rm(unpacked, { recursive: true, force: true }))

  for (const page of WITH_ARCHIVE) {
    test(page, async () => {
      await using reader = await Follower.create()
      await symlink(archive(), join(reader.home, archiveName()))
      await provideTrial(reader.home)
      await reader.follow(page)
    })
  }

  for (const page of WITH_PROGRAM) {
    test(page, async () => {
      await using reader = await Follower.create({ programs })
      await reader.follow(page)
    })
  }

  for (const page of WITH_OWN_NETWORK) {
    test(page, {
      skip: process.getuid?.() !== 0 && 'a network of its own needs root',
    }, async () => {
      await using reader = await Follower.create({ programs, hasOwnNetwork: true })
      await reader.follow(page)
    })
  }

  for (const page of WITH_CLUSTER) {
    test(`${page}, with another tidings as the cluster`, async () => {
      await using reader = await Follower.create({ programs })
      const cluster = reader.terminal('cluster')
      cluster.type('tidings dev --data-dir=cluster')
      await eventually('it is up', () => cluster.output.includes('Ctrl-C'), 20_000)
      await mkdir(join(reader.home, '.kube'))
      await copyFile(join(reader.home, 'cluster/kubeconfig'), join(reader.home, '.kube/config'))
      await reader.follow(page)
    })

    test(`${page}, with a Kubernetes API server`, {
      skip:
        kubeApiserverBinary === '' && 'did NOT run: set KUBE_APISERVER to a kube-apiserver 1.37',
    }, async () => {
      await using cluster = await KubeApiserver.start()
      await using reader = await Follower.create({ programs })
      await mkdir(join(reader.home, '.kube'))
      await writeFile(join(reader.home, '.kube/config'), kubeconfig(cluster))
      await reader.follow(page)
    })
  }
})

test('all tutorials are followed', () => {
  const followed = [...WITH_ARCHIVE, ...WITH_PROGRAM, ...WITH_CLUSTER]
  const pages = readdirSync(join(root, TUTORIALS)).map((name) => `${TUTORIALS}/${name}`)
  assert.deepEqual(followed.filter((page) => page.startsWith(TUTORIALS)).sort(), pages.sort())
})

/** What the script of the archive would fetch from Debian first. */
async function provideTrial(home: string): Promise<void> {
  const folder = join(home, '.cache/tidings-trial/programs/usr/bin')
  await mkdir(folder, { recursive: true })
  await symlink(etcdBinary, join(folder, 'etcd'))
  await symlink(kubectlBinary, join(folder, 'kubectl'))
}

function archiveName(): string {
  const names = existsSync(release) ? readdirSync(release) : []
  return (
    names.find((name) => /^tidings-[\d.]+-linux-x64\.tar\.gz$/.test(name)) ??
    assert.fail('there is no archive in release/: npm run dist')
  )
}

function archive(): string {
  return join(release, archiveName())
}

/** JSON is YAML, too. */
function kubeconfig({ port, ca }: KubeApiserver): string {
  const authority = Buffer.from(ca).toString('base64')
  const server = `https://127.0.0.1:${port}`
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'kube', cluster: { server, 'certificate-authority-data': authority } }],
    users: [{ name: 'admin', user: { token: KUBE_ADMIN_TOKEN } }],
    contexts: [{ name: 'kube', context: { cluster: 'kube', user: 'admin' } }],
    'current-context': 'kube',
  })
}
