import assert from 'node:assert/strict'
import type { EventKey, StoredEvent } from '../../src/storage/storage.ts'

export function eventKey(namespace: string, name: string): EventKey {
  return { cluster: 'local', namespace, name }
}

/** The stored JSON of an event, about as large as most events when `note` is short. */
export function eventBody(
  key: EventKey,
  note: string,
  fields?: {
    readonly reason?: string
    readonly type?: string
    readonly kind?: string
    readonly controller?: string
    readonly eventTime?: string
    readonly labels?: Readonly<Record<string, string>>
  },
): Buffer {
  const { namespace, name } = key
  return Buffer.from(
    JSON.stringify({
      metadata: {
        name,
        namespace,
        uid: '5b1f2f5e-6f0b-4e0e-9d3c-0a6f1f3a9b11',
        creationTimestamp: '2026-01-01T00:00:00Z',
        ...(fields?.labels === undefined ? {} : { labels: fields.labels }),
      },
      eventTime: fields?.eventTime ?? '2026-01-01T00:00:00.000000Z',
      reportingController: fields?.controller ?? 'kubelet',
      reportingInstance: 'node-17.example.internal',
      action: 'Pulling',
      reason: fields?.reason ?? 'Pulling',
      regarding: {
        kind: fields?.kind ?? 'Pod',
        namespace,
        name: `web-${name}`,
        uid: 'd3b9a0f2-9a0e-4f0c-8a51-93d2ad1f6a55',
        apiVersion: 'v1',
      },
      note,
      type: fields?.type ?? 'Normal',
    }),
  )
}

export function noteOf(stored: StoredEvent): string {
  return JSON.parse(stored.body.toString()).note
}

/** The error that the promise rejects with. */
export async function failure(promise: Promise<unknown>): Promise<unknown> {
  const answered = Symbol('answered')
  const outcome = await promise.then(
    () => answered,
    (error: unknown) => error,
  )
  if (outcome === answered) assert.fail('it should have failed')
  return outcome
}
