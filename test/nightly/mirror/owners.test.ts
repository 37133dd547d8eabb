/** The owners of pods, ReplicaSets and Jobs, read from a real Kubernetes API server. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { OriginClient } from '../../../src/clusters/origin-client.ts'
import { KnownOwners } from '../../../src/incidents/known-owners.ts'
import { monotonicClock } from '../../../src/lib/clock.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { HttpOwners } from '../../../src/mirror/http-owners.ts'
import { OwnerWatches } from '../../../src/mirror/owner-watches.ts'
import { fieldsIn } from '../../../src/storage/event-fields.ts'
import { eventually } from '../../support/eventually.ts'
import {
  KUBE_ADMIN_TOKEN,
  KubeApiserver,
  withoutKubeApiserver,
} from '../../support/kube-apiserver.ts'
import { describeMirroredOwners } from '../../support/mirrored-owners.ts'
import { ownedObject } from '../../support/owned-objects.ts'

const TOKEN = 'mirror-token'
const RBAC = '/apis/rbac.authorization.k8s.io/v1'

describe('owners at a real API server', { skip: withoutKubeApiserver }, () => {
  let kube: KubeApiserver

  before(async () => {
    kube = await KubeApiserver.start({ tokens: [{ token: TOKEN, user: 'mirror' }] })
    await kube.create('/api/v1/namespaces', { metadata: { name: 'shop' } })
  })
  after(async () => {
    await kube?.[Symbol.asyncDispose]()
  })

  const create = (...object: Parameters<typeof ownedObject>) => {
    const { path, body } = ownedObject(...object)
    return kube.create(path, body)
  }
  const start = () => {
    const known = new KnownOwners()
    const server = {
      url: new URL(`https://127.0.0.1:${kube.port}`),
      ca: kube.ca,
      serverName: undefined,
      clientCertificate: undefined,
      token: TOKEN,
      fingerprint: '',
    }
    const client = new OriginClient(() => server)
    const origin = new HttpOwners({ client })
    const options = { origin, known, cluster: 'c', namespaces: undefined }
    const watches = new OwnerWatches({ ...options, clock: monotonicClock, log: silentLog })
    const ending = new AbortController()
    const running = watches.run(ending.signal)
    const workload = (kind: string, name: string): string => {
      const regarding = { kind, namespace: 'shop', name }
      const found = known.resolve('c', fieldsIn({ regarding }))
      return `${found.kind}/${found.name} by ${found.rule}`
    }
    return {
      watches,
      workload,
      known,
      async [Symbol.asyncDispose](): Promise<void> {
        ending.abort()
        await running
        client.close()
      },
    }
  }

  test('without the right to read them, the message of the API server is shown', async () => {
    await using following = start()
    const { watches } = following
    const isShown = () =>
      /^owners of pods, replicasets, jobs are unknown: the origin responded 403: pods is forbidden: User "mirror" cannot list resource "pods"/.test(
        watches.message,
      )
    await eventually('the message is there', isShown, 15_000)
  })

  test('lists and follows them', async () => {
    await kube.create(`${RBAC}/clusterroles`, {
      metadata: { name: 'owners' },
      rules: [
        { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
        { apiGroups: ['apps'], resources: ['replicasets'], verbs: ['list', 'watch'] },
        { apiGroups: ['batch'], resources: ['jobs'], verbs: ['list', 'watch'] },
      ],
    })
    await kube.create(`${RBAC}/clusterrolebindings`, {
      metadata: { name: 'owners' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'owners' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'mirror' }],
    })
    for (let index = 0; index < 300; index++) await create('Pod', `p${index}`, 'DaemonSet/agent')
    await create('ReplicaSet', 'odd-set', 'Deployment/odd')
    await create('Pod', 'odd-pod', 'ReplicaSet/odd-set')
    await create('Job', 'odd-job', 'CronJob/nightly')
    await create('Pod', 'bare-x2k4q')
    // The API server's own authorizer follows its objects with a short delay.
    const isAllowed = async () =>
      (await kube.ask('GET', '/api/v1/pods?limit=1', { token: TOKEN })).status === 200
    await eventually('the role is in effect', isAllowed, 15_000)
    await using following = start()
    const { watches, workload, known } = following
    await eventually('all are known', () => known.size === 304, 30_000)
    assert.equal(workload('Pod', 'odd-pod'), 'Deployment/odd by owner')
    assert.equal(workload('Job', 'odd-job'), 'CronJob/nightly by owner')
    assert.equal(workload('Pod', 'p299'), 'DaemonSet/agent by owner')
    assert.equal(workload('Pod', 'bare-x2k4q'), 'Pod/bare-x2k4q by owner')
    await create('Pod', 'late', 'StatefulSet/db')
    const isKnown = () => workload('Pod', 'late') === 'StatefulSet/db by owner'
    await eventually('a new pod is known', isKnown, 15_000)
    await kube.kill()
    await kube.run()
    await create('Pod', 'later', 'StatefulSet/db')
    const isFollowed = () => workload('Pod', 'later') === 'StatefulSet/db by owner'
    await eventually('the watch goes on after a restart', isFollowed, 60_000)
    // It refuses everything for a moment after its start.
    await eventually('all are followed again', () => watches.message === '', 15_000)
  })
})

describeMirroredOwners(
  'events of a real API server, mirrored with owners',
  async () => {
    const kube = await KubeApiserver.start()
    await kube.create('/api/v1/namespaces', { metadata: { name: 'shop' } })
    return {
      kubeconfig: kube.kubeconfig(KUBE_ADMIN_TOKEN),
      ask: (...request) => kube.ask(...request),
      [Symbol.asyncDispose]: () => kube[Symbol.asyncDispose](),
    }
  },
  withoutKubeApiserver,
)
