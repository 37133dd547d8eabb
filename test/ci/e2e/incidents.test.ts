/**
 * The first questions of a night, with the oldest and the newest kubectl: a crash loop that has run for
 * hours, an eviction, a rollout, and a CronJob that runs every minute.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { KubectlSession, OLDEST, RECORDED_WITH, whyNot } from '../../nightly/kubectl/kubectl.ts'
import { type ApiCall, EventClient } from '../../support/event-client.ts'
import { ADMIN_TOKEN } from '../../support/replicas.ts'

const MINUTE_MS = 60_000
const nowMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS
const page = readFileSync(join(import.meta.dirname, '../../../docs/how-to/questions.md'), 'utf8')

interface Made {
  readonly name: string
  readonly type?: string
  readonly reason: string
  readonly object: string
  readonly message: string
  readonly component: string
  readonly host?: string
  readonly minutesAgo: number
  /** Minutes ago at which it was seen again. */
  readonly again?: readonly number[]
}

const CRASHING = ['checkout-7c9d8b5f6-x2k4q', 'checkout-7c9d8b5f6-b9s7d'] as const

/** From three hours ago until now, every three minutes. */
const REPEATS = Array.from({ length: 58 }, (_, index) => 177 - 3 * index)

const NIGHT: readonly Made[] = [
  ...CRASHING.map(
    (pod, index): Made => ({
      name: `crash-${index}`,
      type: 'Warning',
      reason: 'BackOff',
      object: `Pod/${pod}`,
      message: `Back-off restarting failed container app in pod ${pod}_shop(c${index})`,
      component: 'kubelet',
      host: 'worker-3',
      minutesAgo: 180,
      again: REPEATS,
    }),
  ),
  {
    name: 'evicted',
    type: 'Warning',
    reason: 'Evicted',
    object: 'Pod/cart-5d8c7b6f9-k5s2n',
    message: 'The node was low on resource: ephemeral-storage.',
    component: 'kubelet',
    host: 'worker-1',
    minutesAgo: 110,
  },
  ...[
    'Scaled up replica set web-7d8c6b5f9 to 2',
    'Scaled down replica set web-6f9c7d8b5 to 0 from 2',
  ].map(
    (message, index): Made => ({
      name: `rollout-${index}`,
      reason: 'ScalingReplicaSet',
      object: 'Deployment/web',
      message,
      component: 'deployment-controller',
      minutesAgo: 90 - index,
    }),
  ),
  {
    name: 'scale',
    reason: 'ScalingReplicaSet',
    object: 'Deployment/checkout',
    message: 'Scaled up replica set checkout-7c9d8b5f6 to 2',
    component: 'deployment-controller',
    minutesAgo: 181,
  },
  // A Job every minute, which used to be all that was visible.
  ...Array.from({ length: 60 }, (_, index): Made => {
    const job = `report-${29_000_000 + index}`
    return {
      name: `job-${index}`,
      reason: 'SuccessfulCreate',
      object: 'CronJob/report',
      message: `Created job ${job}`,
      component: 'cronjob-controller',
      minutesAgo: 240 - 4 * index,
    }
  }),
]

for (const version of [OLDEST, RECORDED_WITH]) {
  describe(`the questions of a night with kubectl ${version}`, { skip: whyNot(version) }, () => {
    let session: KubectlSession
    before(async () => {
      session = await KubectlSession.start(version, '')
      const { port, ca } = session.server
      using client = await EventClient.open({ port, ca, token: ADMIN_TOKEN })
      for (const made of NIGHT) await write(client, made)
    })
    after(() => session[Symbol.asyncDispose]())

    const run = async (command: string): Promise<readonly string[][]> => {
      const { output, exitCode } = await session.run(command)
      assert.equal(exitCode, 0, output)
      return output
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/ {2,}/))
    }
    const objectsOf = (rows: readonly string[][]) =>
      rows.slice(1).map((cells) => cells.find((cell) => /^[a-z]+\/[\w-]+$/.test(cell)))

    test('What is going on?', async (t) => {
      const [head, ...rows] = await run(commandOf(t.name))
      assert.deepEqual(head?.slice(0, 6), [
        'NAMESPACE',
        'TYPE',
        'WORKLOAD',
        'REASON',
        'PATTERN',
        'OCCURRENCES',
      ])
      assert.deepEqual(
        rows.map(([, type]) => type),
        ['Warning', 'Warning', 'Normal', 'Normal', 'Normal', 'Normal'],
      )
      const incidents = rows.map(([, , workload, reason, , occurrences]) =>
        [workload, reason, occurrences].join(' '),
      )
      assert.deepEqual(incidents.slice(0, 3), [
        'Deployment/cart Evicted 1',
        'Deployment/checkout BackOff 118',
        'Deployment/web ScalingReplicaSet 1',
      ])
      // The other half of the rollout, the first rollout, and 60 Jobs in one line.
      assert.deepEqual(incidents.slice(3).toSorted(), [
        'CronJob/report SuccessfulCreate 60',
        'Deployment/checkout ScalingReplicaSet 1',
        'Deployment/web ScalingReplicaSet 1',
      ])
    })

    test('What is new compared with yesterday?', async (t) => {
      const [warning = [], head = [], ...rows] = await run(commandOf(t.name))
      assert.match(warning.join(), /^Warning: events go back only to /)
      assert.ok(head.includes('BEFORE'))
      assert.equal(rows.length, 6)
      const since = await run(`${commandOf(t.name)},since=100m`)
      assert.deepEqual(
        since.slice(2).map(([, , workload]) => workload),
        // The crash loop is not new, but occurs ten times as often as on average the day before.
        ['Deployment/checkout', 'Deployment/web', 'Deployment/web'],
      )
    })

    test('What happened to this Deployment?', async (t) => {
      const objects = objectsOf(await run(commandOf(t.name)))
      assert.deepEqual(objects.toSorted(), [
        'deployment/checkout',
        ...CRASHING.map((pod) => `pod/${pod}`).toSorted(),
      ])
    })

    test('What happened on this node?', async (t) => {
      const objects = objectsOf(await run(commandOf(t.name)))
      assert.deepEqual(objects.toSorted(), CRASHING.map((pod) => `pod/${pod}`).toSorted())
    })

    test('a crash loop of hours is not one bar in the last minutes', async () => {
      const from = new Date(nowMs - 180 * MINUTE_MS).toISOString()
      const until = new Date(nowMs).toISOString()
      const rows = await run(
        `kubectl get eventhistograms -n shop --field-selector type=Warning,reason=BackOff,since=${from},until=${until},buckets=36`,
      )
      const totals = rows.slice(1).map(([, , total]) => Number(total))
      const seen = [180, ...REPEATS]
      assert.deepEqual(
        totals,
        Array.from({ length: 36 }, (_, index) => {
          const [begin, end] = [180 - 5 * index, 175 - 5 * index]
          return CRASHING.length * seen.filter((ago) => ago <= begin && ago > end).length
        }),
      )
    })

    test('a selector that would find nothing is answered with what to write', async () => {
      const said = async (selector: string): Promise<string> =>
        (await session.run(`kubectl get events -n shop --field-selector '${selector}'`)).output
      assert.match(
        await said('mentions=checkout'),
        /write a kind and a name, such as Pod\/checkout/,
      )
      assert.match(await said('workload=checkout'), /such as Deployment\/checkout/)
      assert.match(await said('reason=BackOff,reason=Evicted'), /write reason=BackOff\|Evicted/)
      assert.match(await said('involvedObject.name=*checkout'), /write \* only at the end/)
      const prefixed = await said('involvedObject.name=checkout-*')
      for (const pod of CRASHING) assert.ok(prefixed.includes(pod), prefixed)
      const either = await said('reason=BackOff|Evicted')
      assert.equal(either.trimEnd().split('\n').length, 4)
    })
  })
}

/** The command of a question. */
function commandOf(title: string): string {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${title}\n`)) ?? ''
  const command = /^```sh\n(.*)\n```$/m.exec(section)?.[1]
  assert.ok(command, title)
  return command
}

/** Creates the event, and raises its count as the recorder of core/v1 does. */
async function write(client: EventClient, made: Made): Promise<void> {
  const [kind, name] = made.object.split('/')
  const at = (minutesAgo: number) =>
    `${new Date(nowMs - minutesAgo * MINUTE_MS).toISOString().slice(0, 19)}Z`
  const path = '/api/v1/namespaces/shop/events'
  const send = async (call: ApiCall, status: number, type = 'application/json') => {
    const answer = await client.request({ ...call, headers: { 'content-type': type } })
    assert.equal(answer.status, status, answer.body.toString())
  }
  const created = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: made.name, namespace: 'shop' },
    involvedObject: { kind, namespace: 'shop', name, uid: `uid-${name}` },
    type: made.type ?? 'Normal',
    reason: made.reason,
    message: made.message,
    source: { component: made.component, ...(made.host !== undefined && { host: made.host }) },
    firstTimestamp: at(made.minutesAgo),
    lastTimestamp: at(made.minutesAgo),
    count: 1,
  }
  await send({ method: 'POST', path, body: JSON.stringify(created) }, 201)
  for (const [index, minutesAgo] of (made.again ?? []).entries()) {
    const body = JSON.stringify({ count: index + 2, lastTimestamp: at(minutesAgo) })
    const call = { method: 'PATCH', path: `${path}/${made.name}`, body }
    await send(call, 200, 'application/strategic-merge-patch+json')
  }
}
