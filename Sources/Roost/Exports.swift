// An app writes `import Roost` and has the identifiers, models, operations and errors of the protocol with it.
@_exported public import RoostAPI
