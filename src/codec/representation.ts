/** The media type of Kubernetes protobuf; see kube-protobuf.ts. */
export const PROTOBUF = 'application/vnd.kubernetes.protobuf'

/** The response format that was negotiated with a client. */
export interface Representation {
  readonly mediaType: 'application/json' | 'application/yaml' | typeof PROTOBUF
  /** The object itself, a table of its printed columns, or its metadata only. */
  readonly as: 'object' | 'table' | 'partial'
  /** The version of the table or partial object. Both versions have the same content. */
  readonly metaVersion: MetaVersion
  /** The object that the rows of a table contain besides their cells. */
  readonly includeObject: IncludeObject
  /** Whether JSON is indented for people to read. */
  readonly isPretty: boolean
}

export type MetaVersion = 'v1' | 'v1beta1'

export type IncludeObject = 'None' | 'Metadata' | 'Object'
