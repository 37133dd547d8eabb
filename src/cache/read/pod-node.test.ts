import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { KnownOwners } from '../../incidents/known-owners.ts'
import { marksOf } from '../../incidents/marks.ts'
import { versionOfChange } from '../../storage/resource-version.ts'
import { storedEvent } from '../memory/made-events.fixture.ts'
import { defaultMemoryBounds, EventMemory } from '../memory/memory.ts'
import { nodeOfPod } from './pod-node.ts'

const POD = { kind: 'Pod', namespace: 'shop', name: 'web-0', uid: 'u1' }

function memoryOf(events: readonly { readonly cluster?: string; readonly event: object }[]) {
  const memory = new EventMemory(defaultMemoryBounds, { now: () => 0 })
  for (const [at, { cluster = 'east', event }] of events.entries()) {
    const key = { cluster, namespace: 'shop', name: `e${at}` }
    const metadata = { name: key.name, namespace: key.namespace }
    const body = Buffer.from(JSON.stringify({ metadata, ...event }))
    memory.put(storedEvent(key, versionOfChange(at + 1, 0), body))
  }
  return memory
}

function scheduled(node: string, uid = 'u1'): object {
  const note = `Successfully assigned shop/web-0 to ${node}`
  return { reason: 'Scheduled', note, regarding: { ...POD, uid } }
}

describe('the node of a pod', () => {
  test('is what other events about it say', () => {
    const unplaced = { reason: 'FailedScheduling', regarding: POD }
    const memory = memoryOf([{ event: unplaced }, { event: scheduled('node-1') }])
    assert.equal(nodeOfPod(memory, 'east', POD), 'node-1')
    assert.equal(nodeOfPod(memory, 'west', POD), '')
    assert.equal(nodeOfPod(memory, 'east', { ...POD, namespace: 'billing' }), '')
    assert.equal(nodeOfPod(memory, 'east', { ...POD, name: 'web-1' }), '')
  })

  test('is not that of an earlier pod of the same name', () => {
    const memory = memoryOf([{ event: scheduled('node-1') }, { event: scheduled('node-2', 'u2') }])
    assert.equal(nodeOfPod(memory, 'east', { ...POD, uid: 'u2' }), 'node-2')
    assert.equal(nodeOfPod(memory, 'east', { ...POD, uid: 'u3' }), '')
  })

  test('is stored with an event about the pod that does not name it', () => {
    const memory = memoryOf([{ event: scheduled('node-1') }])
    const known = {
      owners: new KnownOwners(),
      nodeOfPod: (cluster: string, pod: typeof POD) => nodeOfPod(memory, cluster, pod),
    } as const
    const evicted = {
      metadata: { name: 'x', namespace: 'shop' },
      reason: 'TaintManagerEviction',
      reportingController: 'taint-eviction-controller',
      regarding: POD,
    }
    assert.deepEqual(marksOf('east', evicted, known as never), { node: 'node-1' })
    const named = { ...evicted, reportingController: 'kubelet', reportingInstance: 'node-3' }
    assert.deepEqual(marksOf('east', named, known as never), {})
    const elsewhere = { ...evicted, metadata: { name: 'x', namespace: 'billing' } }
    assert.deepEqual(marksOf('east', elsewhere, known as never), {})
  })
})
