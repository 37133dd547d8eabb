import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { CoreV1Api, CustomObjectsApi, KubeConfig, makeInformer } from '@kubernetes/client-node'
import { eventually } from '../../support/eventually.ts'
import { KubectlSession, RECORDED_WITH, whyNot } from '../kubectl/kubectl.ts'

describe('kubectl and client-node with namespaces and clusters', {
  skip: whyNot(RECORDED_WITH),
}, () => {
  let session: KubectlSession
  before(async () => {
    session = await KubectlSession.start(RECORDED_WITH, '/clusters/prod-eu')
    await session.run('kubectl create -f events.yaml')
  })
  after(() => session[Symbol.asyncDispose]())

  const printed = async (command: string): Promise<string> => {
    const { output, exitCode } = await session.run(command)
    assert.equal(exitCode, 0, output)
    return output.replaceAll(/ {2,}/g, '  ').trim()
  }

  test('kubectl lists, completes, explains and describes them', async () => {
    assert.match(await printed('kubectl get ns'), /^NAME {2}STATUS {2}AGE\nshop {2}Active {2}\d+s$/)
    const rows = (await printed('kubectl get clusters')).split('\n')
    assert.equal(rows[0], 'NAME  EVENTS  OLDEST  LAST EVENT  MIRROR  LAG  MESSAGE')
    assert.match(rows[1] ?? '', /^local {2}0/)
    assert.match(rows[2] ?? '', /^prod-eu {2}2 {2}\d+d {2}\d+d/)
    assert.match(await printed('kubectl __complete get events -n s'), /^shop\n/)
    assert.match(await printed('kubectl describe ns shop'), /Status:\s+Active/)
    assert.match(await printed('kubectl explain clusters.status'), /lastEventTime/)
    assert.match(await printed('kubectl get cluster prod-eu -o yaml'), /\n {2}events: 2\n/)
    const refused = await session.run('kubectl --context nobody get clusters')
    assert.match(refused.output, /clusters.tidings.dev is forbidden/)
  })

  test('kubectl and an informer of client-node see a namespace come and go', async () => {
    const config = new KubeConfig()
    const { port, ca } = session.server
    config.loadFromOptions({
      clusters: [
        {
          name: 'tidings',
          server: `https://127.0.0.1:${port}/clusters/prod-eu`,
          caData: Buffer.from(ca).toString('base64'),
        },
      ],
      users: [{ name: 'admin', token: 'admin-token' }],
      contexts: [{ name: 'admin', cluster: 'tidings', user: 'admin' }],
      currentContext: 'admin',
    })
    const core = config.makeApiClient(CoreV1Api)
    const seen: string[] = []
    const informer = makeInformer(config, '/api/v1/namespaces', () => core.listNamespace())
    informer.on('add', ({ metadata }) => seen.push(`add ${metadata?.name}`))
    informer.on('delete', ({ metadata }) => seen.push(`delete ${metadata?.name}`))
    await informer.start()
    await using watched = session.start('kubectl get ns -w')
    await watched.printed(2)
    await session.run('kubectl delete events --all -n shop')
    await watched.printed(3)
    await eventually('the informer', () => seen.length >= 2)
    await informer.stop()
    assert.deepEqual(seen, ['add shop', 'delete shop'])
    const listed = await config.makeApiClient(CustomObjectsApi).listClusterCustomObject({
      group: 'tidings.dev',
      version: 'v1alpha1',
      plural: 'clusters',
    })
    assert.deepEqual(
      listed.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name),
      ['local'],
    )
  })
})
