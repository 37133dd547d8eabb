import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  ApiException,
  CoreV1Api,
  EventsV1Api,
  type EventsV1Event,
  KubeConfig,
  KubernetesObjectApi,
  ListWatch,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  V1MicroTime,
  Watch,
} from '@kubernetes/client-node'
import { eventually } from '../../support/eventually.ts'
import { ADMIN_TOKEN, Replicas } from '../../support/replicas.ts'

for (const prefix of ['', '/clusters/prod-eu']) suite(prefix)

function suite(prefix: string): void {
  describe(`@kubernetes/client-node with server URL ${prefix || '/'}`, () => {
    let replicas: Replicas
    let config: KubeConfig
    let events: EventsV1Api
    before(async () => {
      replicas = await Replicas.start(1)
      config = configFor(prefix, replicas)
      events = config.makeApiClient(EventsV1Api)
    })
    after(() => replicas[Symbol.asyncDispose]())

    const create = (namespace: string, name: string, changes: Partial<EventsV1Event> = {}) =>
      events.createNamespacedEvent({ namespace, body: { ...sample(namespace, name), ...changes } })
    const pathOf = (namespace: string): string =>
      `/apis/events.k8s.io/v1/namespaces/${namespace}/events`

    test('create, read, replace, list and delete return the event that was sent', async () => {
      const namespace = 'node-life'
      const created = await create(namespace, 'one')
      assert.match(created.metadata?.uid ?? '', /^[0-9a-f-]{36}$/)
      const read = await events.readNamespacedEvent({ namespace, name: 'one' })
      assert.deepEqual(read, created)
      assert.ok(read.metadata?.creationTimestamp instanceof Date)
      const replaced = await events.replaceNamespacedEvent({
        namespace,
        name: 'one',
        body: { ...read, series: { count: 2, lastObservedTime: new V1MicroTime() } },
      })
      assert.equal(replaced.series?.count, 2)
      const listed = await events.listNamespacedEvent({
        namespace,
        fieldSelector: 'regarding.name=web-0',
      })
      assert.deepEqual(
        listed.items.map((item) => item.metadata?.name),
        ['one'],
      )
      await events.deleteNamespacedEvent({ namespace, name: 'one' })
      assert.equal((await events.listEventForAllNamespaces({})).items.length, 0)
    })

    test('core/v1 shows the same event with its older field names', async () => {
      const namespace = 'node-core'
      await create(namespace, 'one')
      const core = config.makeApiClient(CoreV1Api)
      const old = await core.readNamespacedEvent({ namespace, name: 'one' })
      assert.equal(old.message, 'this is one')
      assert.equal(old.involvedObject.name, 'web-0')
      assert.equal(old.reportingComponent, 'client-node')
      const { items } = await core.listNamespacedEvent({
        namespace,
        fieldSelector: 'involvedObject.name=web-0',
      })
      assert.equal(items.length, 1)
    })

    test('KubernetesObjectApi finds an object by its kind alone', async () => {
      const namespace = 'node-object'
      const objects = KubernetesObjectApi.makeApiClient(config)
      const header = {
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: { namespace, name: 'one' },
      }
      await objects.create({ ...sample(namespace, 'one'), ...header })
      const read = await objects.read<EventsV1Event & typeof header>(header)
      assert.equal(read.note, 'this is one')
      await objects.delete(header)
      await assert.rejects(objects.read(header), { code: 404 })
    })

    describe('patches', () => {
      const namespace = 'node-patch'
      const patch = (name: string, strategy: PatchStrategy, body: unknown, fieldManager?: string) =>
        events.patchNamespacedEvent(
          { namespace, name, body, ...(fieldManager === undefined ? {} : { fieldManager }) },
          setHeaderOptions('Content-Type', strategy),
        )

      test('a JSON patch adds and removes', async () => {
        await create(namespace, 'json')
        const patched = await patch('json', PatchStrategy.JsonPatch, [
          { op: 'add', path: '/metadata/labels', value: { a: 'b' } },
        ])
        assert.deepEqual(patched.metadata?.labels, { a: 'b' })
      })

      test('a merge patch replaces lists', async () => {
        await create(namespace, 'merge')
        await patch('merge', PatchStrategy.MergePatch, {
          metadata: { finalizers: ['example.com/a'] },
        })
        const patched = await patch('merge', PatchStrategy.MergePatch, {
          metadata: { finalizers: ['example.com/b'] },
        })
        assert.deepEqual(patched.metadata?.finalizers, ['example.com/b'])
      })

      test('a strategic merge patch adds to sets', async () => {
        await create(namespace, 'strategic')
        for (const finalizer of ['example.com/a', 'example.com/b']) {
          await patch('strategic', PatchStrategy.StrategicMergePatch, {
            metadata: { finalizers: [finalizer] },
          })
        }
        const { metadata } = await events.readNamespacedEvent({ namespace, name: 'strategic' })
        assert.deepEqual(metadata?.finalizers?.toSorted(), ['example.com/a', 'example.com/b'])
      })

      test('server-side apply creates, and a second manager gets a conflict', async () => {
        const applied = {
          apiVersion: 'events.k8s.io/v1',
          kind: 'Event',
          ...wire(namespace, 'applied'),
        }
        const created = await patch('applied', PatchStrategy.ServerSideApply, applied, 'first')
        assert.equal(created.metadata?.managedFields?.[0]?.manager, 'first')
        await assert.rejects(
          patch('applied', PatchStrategy.ServerSideApply, { ...applied, note: 'other' }, 'second'),
          { code: 409 },
        )
      })
    })

    describe('errors', () => {
      const namespace = 'node-errors'
      const cases: readonly {
        readonly what: string
        readonly code: number
        readonly reason: string
        readonly ask: () => Promise<unknown>
      }[] = [
        {
          what: 'a missing event',
          code: 404,
          reason: 'NotFound',
          ask: () => events.readNamespacedEvent({ namespace, name: 'nobody' }),
        },
        {
          what: 'a taken name',
          code: 409,
          reason: 'AlreadyExists',
          ask: () => create(namespace, 'twice').then(() => create(namespace, 'twice')),
        },
        {
          what: 'an invalid event',
          code: 422,
          reason: 'Invalid',
          ask: () => create(namespace, 'odd', { type: 'Odd' }),
        },
        {
          what: 'an unknown selector',
          code: 400,
          reason: 'BadRequest',
          ask: () => events.listNamespacedEvent({ namespace, fieldSelector: 'colour=red' }),
        },
      ]
      for (const { what, code, reason, ask } of cases) {
        test(`${what} is an ApiException with ${code} ${reason}`, async () => {
          await assert.rejects(ask, (error) => {
            assert.ok(error instanceof ApiException)
            assert.equal(error.code, code)
            assert.equal(JSON.parse(String(error.body)).reason, reason)
            return true
          })
        })
      }

      test('an unknown token is an ApiException with 401', async () => {
        const unauthenticated = configFor(prefix, replicas, 'unknown').makeApiClient(EventsV1Api)
        await assert.rejects(unauthenticated.listNamespacedEvent({ namespace }), { code: 401 })
      })
    })

    test('a watch ended by the client resumes from the last version it saw', async () => {
      const namespace = 'node-watch'
      const watch = new Watch(config)
      const { metadata } = await events.listNamespacedEvent({ namespace })
      const seen: { readonly phase: string; readonly name: string; readonly version: string }[] = []
      const from = (resourceVersion: string): Promise<AbortController> =>
        watch.watch(
          pathOf(namespace),
          { resourceVersion },
          (phase, object) => {
            seen.push({
              phase,
              name: object.metadata.name,
              version: object.metadata.resourceVersion,
            })
          },
          () => {},
        )
      const first = await from(metadata?.resourceVersion ?? '')
      await create(namespace, 'one')
      await eventually('the first change is received', () => seen.length === 1)
      first.abort()
      await create(namespace, 'two')
      await events.deleteNamespacedEvent({ namespace, name: 'one' })
      const second = await from(seen.at(-1)?.version ?? '')
      await eventually('the rest is received', () => seen.length === 3)
      second.abort()
      assert.deepEqual(
        seen.map(({ phase, name }) => `${phase} ${name}`),
        ['ADDED one', 'ADDED two', 'DELETED one'],
      )
    })

    test('an informer continues by itself after the server ends its watch', async () => {
      const namespace = 'node-informer'
      const received: string[] = []
      let connects = 0
      await create(namespace, 'before')
      // The server ends every watch after a while; here after a second.
      const informer = new ListWatch<EventsV1Event>(
        `${pathOf(namespace)}?timeoutSeconds=1`,
        new Watch(config),
        () => events.listNamespacedEvent({ namespace }) as never,
        false,
        undefined,
        undefined,
        { delayFn: async () => {} },
      )
      informer.on('add', (event) => received.push(`add ${event.metadata?.name}`))
      informer.on('update', (event) => received.push(`update ${event.metadata?.name}`))
      informer.on('delete', (event) => received.push(`delete ${event.metadata?.name}`))
      informer.on('connect', () => {
        connects += 1
      })
      informer.on('error', (error) => received.push(`error ${error}`))
      await informer.start()
      await create(namespace, 'after')
      await eventually('a new watch has begun', () => connects >= 3, 10_000)
      await events.deleteNamespacedEvent({ namespace, name: 'before' })
      await eventually('all is received', () => received.length >= 3)
      await informer.stop()
      assert.deepEqual(received, ['add before', 'add after', 'delete before'])
      assert.deepEqual(
        informer.list(namespace).map((event) => event.metadata?.name),
        ['after'],
      )
    })

    test('an informer with a label selector has only the selected events', async () => {
      const namespace = 'node-labels'
      const informer = makeInformer<EventsV1Event>(
        config,
        pathOf(namespace),
        () => events.listNamespacedEvent({ namespace, labelSelector: 'app=web' }) as never,
        'app=web',
      )
      await informer.start()
      const labelled = (name: string, app: string): Promise<EventsV1Event> =>
        create(namespace, name, { metadata: { namespace, name, labels: { app } } })
      await labelled('db', 'db')
      await labelled('web', 'web')
      await eventually('the selected event is received', () => informer.list().length > 0)
      assert.deepEqual(
        informer.list().map((event) => event.metadata?.name),
        ['web'],
      )
      await informer.stop()
    })
  })
}

function configFor(prefix: string, replicas: Replicas, token = ADMIN_TOKEN): KubeConfig {
  const { port, ca } = replicas.server(0)
  const config = new KubeConfig()
  config.loadFromClusterAndUser(
    {
      name: 'tidings',
      server: `https://127.0.0.1:${port}${prefix}`,
      caData: Buffer.from(ca).toString('base64'),
      skipTLSVerify: false,
    },
    { name: 'admin', token },
  )
  return config
}

function sample(namespace: string, name: string): EventsV1Event {
  return { ...wire(namespace, name), eventTime: new V1MicroTime() }
}

/** The fields that are the same in memory and on the wire, and the time as text. */
function wire(
  namespace: string,
  name: string,
): Omit<EventsV1Event, 'eventTime'> & { eventTime: never } {
  return {
    metadata: { namespace, name },
    eventTime: new Date().toISOString() as never,
    reportingController: 'client-node',
    reportingInstance: 'client-node-0',
    action: 'Testing',
    reason: 'Tested',
    regarding: { kind: 'Pod', namespace, name: 'web-0' },
    note: `this is ${name}`,
    type: 'Normal',
  }
}
