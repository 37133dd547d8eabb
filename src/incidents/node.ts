import type { EventFields, ObjectReference } from '../storage/event-fields.ts'

/** The node that the event itself names; empty if none. */
export function nodeOf(fields: NodeFields): string {
  const { regarding, reason } = fields
  if (regarding.kind === 'Node') return regarding.name
  if ((fields.reportingController || fields.sourceComponent) === KUBELET) return hostOf(fields)
  return reason === 'Scheduled' && regarding.kind === 'Pod' ? assignedNode(fields) : ''
}

export type NodeFields = Pick<
  EventFields,
  'note' | 'reason' | 'reportingController' | 'reportingInstance' | 'sourceComponent' | 'sourceHost'
> & { readonly regarding: Pick<ObjectReference, 'kind' | 'namespace' | 'name' | 'uid'> }

const KUBELET = 'kubelet'

/**
 * The recorder of core/v1 writes the node as the host of the source, since Kubernetes 1.29 also as the
 * instance. That of events.k8s.io writes only the instance, behind its name and a dash.
 */
function hostOf({ sourceHost, reportingInstance }: NodeFields): string {
  if (sourceHost !== '') return sourceHost
  const prefix = `${KUBELET}-`
  return reportingInstance.startsWith(prefix)
    ? reportingInstance.slice(prefix.length)
    : reportingInstance
}

/** From `Successfully assigned <namespace>/<pod> to <node>`. */
function assignedNode({ note, regarding }: NodeFields): string {
  if (!note.startsWith(ASSIGNED)) return ''
  const between = ` to `
  const at = note.indexOf(between, ASSIGNED.length)
  if (at < 0) return ''
  const pod = note.slice(ASSIGNED.length, at)
  if (pod !== regarding.name && pod !== `${regarding.namespace}/${regarding.name}`) return ''
  const node = note.slice(at + between.length)
  return node.includes(' ') ? '' : node
}

const ASSIGNED = 'Successfully assigned '
