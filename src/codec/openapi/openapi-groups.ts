/** The groups in the OpenAPI documents: their kinds and operations. */
import type { EventGroup } from '../../api/event-groups.ts'
import { StructType } from '../../api/schema.ts'
import { reviewTypes } from '../review-types.ts'
import { listMetaType } from '../struct/meta-types.ts'
import { eventOperations, type Operation, reviewOperations } from './openapi-operations.ts'

export interface OpenApiGroup {
  /** Empty for core. */
  readonly name: string
  /** Its top-level objects, which have a kind and an apiVersion. */
  readonly kinds: readonly StructType[]
  readonly operations: readonly Operation[]
}

/** A group of events. */
export function eventsOpenApi({ name, type }: EventGroup): OpenApiGroup {
  return { name, kinds: [type, eventListType(type)], operations: eventOperations(name) }
}

/** The groups of the self reviews. */
export const reviewsOpenApi: readonly OpenApiGroup[] = [...reviewTypes].map(([name, kinds]) => ({
  name,
  kinds,
  operations: reviewOperations(
    name,
    kinds.map((kind) => kind.name),
  ),
}))

function eventListType(type: StructType): StructType {
  return new StructType('EventList', [
    {
      name: 'metadata',
      number: 1,
      type: { struct: listMetaType },
      doc: 'Standard list metadata.',
    },
    { name: 'items', number: 2, type: { listOf: type }, isRequired: true, doc: 'The events.' },
  ])
}
