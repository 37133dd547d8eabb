/** The groups in the OpenAPI documents: their kinds and operations. */
import type { EventGroup } from '../../api/event-groups.ts'
import type { StructType } from '../../api/schema.ts'
import { TIDINGS_GROUP, TIDINGS_VERSION } from '../../api/tidings-group.ts'
import { clusterType, listTypeOf, namespaceType } from '../object-types.ts'
import { reviewTypes } from '../review-types.ts'
import { eventOperations, type Operation, reviewOperations } from './openapi-operations.ts'
import { groupOperations, readOperations } from './openapi-read-operations.ts'

export interface OpenApiGroup {
  /** Empty for core. */
  readonly name: string
  readonly version: string
  /** Its top-level objects, which have a kind and an apiVersion. */
  readonly kinds: readonly StructType[]
  readonly operations: readonly Operation[]
}

/** A group of events. */
export function eventsOpenApi({ name, type }: EventGroup): OpenApiGroup {
  const kinds = [type, listTypeOf(type, 'The events.')]
  const operations = eventOperations(name)
  if (name !== '') return { name, version: 'v1', kinds, operations }
  return {
    name,
    version: 'v1',
    kinds: [...kinds, namespaceType, listTypeOf(namespaceType, 'The namespaces.')],
    operations: [...operations, ...readOperations('', 'v1', 'Namespace')],
  }
}

/** The group of the objects that only this server has. */
export const tidingsOpenApi: OpenApiGroup = {
  name: TIDINGS_GROUP,
  version: TIDINGS_VERSION,
  kinds: [clusterType, listTypeOf(clusterType, 'The clusters.')],
  operations: [
    ...groupOperations(TIDINGS_GROUP, TIDINGS_VERSION),
    ...readOperations(TIDINGS_GROUP, TIDINGS_VERSION, 'Cluster'),
  ],
}

/** The groups of the self reviews. */
export const reviewsOpenApi: readonly OpenApiGroup[] = [...reviewTypes].map(([name, kinds]) => ({
  name,
  version: 'v1',
  kinds,
  operations: reviewOperations(
    name,
    kinds.map((kind) => kind.name),
  ),
}))
