/**
 * Events about objects with misleading names, in a cluster that two replicas mirror with its owners.
 * The tests are the same for every kind of origin.
 */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { findKubectl, RECORDED_WITH, whyNot } from '../nightly/kubectl/kubectl.ts'
import { eventually } from './eventually.ts'
import { Kubectl } from './kubectl.ts'
import { MetricSums } from './metric-sums.ts'
import { ownedObject } from './owned-objects.ts'
import { ADMIN_TOKEN, Replicas } from './replicas.ts'

/** A cluster with events, Pods, ReplicaSets and Jobs. */
export interface OriginWithOwners extends AsyncDisposable {
  readonly kubeconfig: string
  /** As its administrator. */
  ask(
    method: string,
    path: string,
    request: { readonly body?: object; readonly headers?: Record<string, string> },
  ): Promise<{ readonly status: number; readonly body: string }>
}

const CLUSTERS = `apiVersion: tidings.dev/v1alpha1
kind: ClusterConfiguration
clusters:
  - { name: prod, kubeconfig: prod.kubeconfig, mirror: { owners: true } }
`
const EVENTS = '/api/v1/namespaces/shop/events'
const SUMMARIES = '/apis/tidings.dev/v1alpha1/namespaces/shop/eventsummaries?groupBy=workload'
const SECONDS_30 = 30_000
/** By their names: a pod of a StatefulSet, one of a DaemonSet, a ReplicaSet of a Deployment and its pod. */
const OBJECTS = [
  ownedObject('Pod', 'web-0'),
  ownedObject('Job', 'import'),
  ownedObject('Pod', 'import-x2k4q', 'Job/import'),
  ownedObject('ReplicaSet', 'pay-7d9f8b6c5', 'Rollout/pay'),
  ownedObject('Pod', 'pay-7d9f8b6c5-b9s7d', 'ReplicaSet/pay-7d9f8b6c5'),
]
const REGARDED = ['Pod/web-0', 'Pod/import-x2k4q', 'ReplicaSet/pay-7d9f8b6c5']
const WORKLOADS = { 'Pod/web-0': 1, 'Job/import': 1, 'Rollout/pay': 2 }
const GUESSES = ['StatefulSet/web', 'DaemonSet/import', 'Deployment/pay']

export function describeMirroredOwners(
  title: string,
  startOrigin: () => Promise<OriginWithOwners>,
  skip: string | false = false,
): void {
  describe(title, { skip }, () => {
    let origin: OriginWithOwners
    let replicas: Replicas

    const write = async (
      method: string,
      path: string,
      request: { readonly body: object; readonly headers?: Record<string, string> },
    ) => {
      const { status, body } = await origin.ask(method, path, request)
      assert.ok(status === 200 || status === 201, `${path}: ${status} ${body}`)
    }
    const isFollowing = async () => {
      const metrics = await MetricSums.of([replicas.server(0), replicas.server(1)])
      return metrics.sum('tidings_mirror_owners_following', { cluster: 'prod' }) === 3
    }

    before(async () => {
      origin = await startOrigin()
      for (const { path, body } of OBJECTS) await write('POST', path, { body })
      replicas = await Replicas.start(0)
      await writeFile(join(replicas.folder, 'prod.kubeconfig'), origin.kubeconfig, { mode: 0o600 })
      await writeFile(join(replicas.folder, 'clusters.yaml'), CLUSTERS)
      await startBoth()
      await eventually('the owners are followed', isFollowing, SECONDS_30)
      for (const object of [...REGARDED, 'Pod/pay-7d9f8b6c5-b9s7d']) {
        await write('POST', EVENTS, { body: eventAbout(object) })
      }
    })
    after(async () => {
      await replicas?.[Symbol.asyncDispose]()
      await origin?.[Symbol.asyncDispose]()
    })

    const flags = () => [`--clusters-file=${join(replicas.folder, 'clusters.yaml')}`]
    const startBoth = () => Promise.all([0, 1].map((index) => replicas.startOne(index, flags())))
    const get = async <T>(index: number, path: string): Promise<T> => {
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
      const { status, body } = await replicas
        .server(index)
        .ask(`/clusters/prod${path}`, { headers })
      assert.equal(status, 200, body)
      return JSON.parse(body)
    }
    const find = async (index: number, workload: string): Promise<readonly Listed[]> => {
      const selector = encodeURIComponent(`workload=${workload}`)
      const { items } = await get<{ items: Listed[] }>(index, `${EVENTS}?fieldSelector=${selector}`)
      return items
    }
    /** The number of events of each workload, all of which were told by owner references. */
    const summary = async (index: number): Promise<Record<string, number>> => {
      const { items } = await get<{ items: Summary[] }>(index, SUMMARIES)
      for (const { group, workloadRule } of items) {
        assert.equal(workloadRule, 'owner', group.workload)
      }
      return Object.fromEntries(items.map(({ group, events }) => [group.workload, events]))
    }
    const checkAll = async () => {
      for (const index of [0, 1]) {
        assert.deepEqual(await summary(index), WORKLOADS)
        const [found, ...others] = await find(index, 'Job/import')
        assert.equal(found?.involvedObject.name, 'import-x2k4q')
        assert.deepEqual(others, [])
        for (const guess of GUESSES) assert.deepEqual(await find(index, guess), [], guess)
      }
    }
    const areStored = async () => {
      const counts = [0, 1].map(async (index) => {
        const { items } = await get<{ items: object[] }>(index, EVENTS)
        return items.length
      })
      return (await Promise.all(counts)).every((count) => count === REGARDED.length + 1)
    }

    test('both replicas find them by their workload', async () => {
      await eventually('both have all events', areStored, SECONDS_30)
      await checkAll()
    })

    test('kubectl shows which rule decided', { skip: whyNot(RECORDED_WITH) }, async () => {
      const server = replicas.server(1)
      const kubectl = await Kubectl.as(ADMIN_TOKEN, server, findKubectl(RECORDED_WITH) ?? '')
      const address = `--server=https://127.0.0.1:${server.port}/clusters/prod`
      const command = [address, 'get', 'eventsummaries', '-n', 'shop', '-o', 'wide']
      const { stdout, stderr } = await kubectl.run(...command)
      const [head = [], ...rows] = stdout.trimEnd().split('\n').map(cellsOf)
      const rule = head.indexOf('RULE')
      assert.ok(rule > 0, `${stdout}${stderr}`)
      const shown = rows.map((cells) => `${cells[head.indexOf('WORKLOAD')]} by ${cells[rule]}`)
      assert.deepEqual([...new Set(shown)].sort(), [
        'Job/import by owner',
        'Pod/web-0 by owner',
        'Rollout/pay by owner',
      ])
    })

    test('they stay where they are when another replica goes on', async () => {
      const headers = { 'content-type': 'application/strategic-merge-patch+json' }
      const isLeader = async (index: number) => {
        const metrics = await MetricSums.of([replicas.server(index)])
        return metrics.sum('tidings_mirror_role', { cluster: 'prod' }) === 1
      }
      const leader = (await isLeader(0)) ? 0 : 1
      replicas.server(leader).kill('SIGKILL')
      const body = { count: 2 }
      await write('PATCH', `${EVENTS}/import-x2k4q.1`, { body, headers })
      const isRaised = async () => (await find(1 - leader, 'Job/import'))[0]?.count === 2
      await eventually('the other replica has the count', isRaised, SECONDS_30)
      assert.deepEqual(await summary(1 - leader), WORKLOADS)
    })

    test('they survive a restart of all replicas without the cluster', async () => {
      await origin[Symbol.asyncDispose]()
      for (const index of [0, 1]) replicas.server(index).kill('SIGKILL')
      await startBoth()
      await checkAll()
    })
  })
}

interface Listed {
  readonly involvedObject: { readonly name: string }
  readonly count: number
}

interface Summary {
  readonly group: { readonly workload: string }
  readonly events: number
  readonly workloadRule: string
}

/** Columns are separated by two spaces or more. */
function cellsOf(line: string): readonly string[] {
  return line.split(/ {2,}/)
}

function eventAbout(object: string): object {
  const [kind, name] = object.split('/')
  const now = `${new Date().toISOString().slice(0, 19)}Z`
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${name}.1`, namespace: 'shop' },
    involvedObject: { kind, namespace: 'shop', name, uid: `uid-${name}` },
    type: 'Warning',
    reason: 'BackOff',
    message: 'Back-off restarting failed container',
    source: { component: 'kubelet', host: 'worker-3' },
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
  }
}
