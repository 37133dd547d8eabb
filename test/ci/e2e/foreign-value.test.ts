/** More of it is in test/nightly/e2e/foreign-etcd.test.ts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startEtcd } from '../../support/etcd.ts'
import { kubernetesValue, Stranger } from '../../support/stranger.ts'
import { Tidings } from '../../support/tidings.ts'

const EXIT_FOREIGN_ETCD = 78

test('a Kubernetes value anywhere under the prefix fails the start before anything is written', async () => {
  await using etcd = await startEtcd()
  using stranger = new Stranger(etcd)
  const keys = [
    '/p1/events/default/web-0.1',
    '/p2/configmaps/kube-system/before-our-folders',
    '/p3/daemonsets/default/between-our-folders',
    '/p4/pods/default/after-our-folders',
    '/p5/control/sweeper',
  ]
  await stranger.put(...keys.map((key) => [key, kubernetesValue] as const))
  const proposals = await stranger.proposals()
  for (const key of keys) {
    await using server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--etcd-prefix=${key.slice(0, 3)}`,
    ])
    assert.equal((await server.ended).code, EXIT_FOREIGN_ETCD, key)
    const { err } = await server.logged('Server failed, exiting')
    assert.match(String(err), new RegExp(`"${key}"`))
    assert.match(String(err), /Give tidings an etcd of its own or another --etcd-prefix/)
  }
  assert.equal(await stranger.proposals(), proposals)
})
