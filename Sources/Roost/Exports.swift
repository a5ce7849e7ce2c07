// What an app gets with `import Roost`: the identifiers, models, errors, filters and limits that the SDK's functions take and return. The rest of the
// protocol (operations, frames and the code that encodes and describes them) is in RoostAPI, which an app imports for `chat.call(…)`.
// `scripts/check-documentation` fails if a type is missing here, or if one is listed that the SDK doesn't use.
// See docs/decisions/0069-what-an-app-imports.md.

// Identifiers and values.
@_exported public import struct RoostAPI.ChannelID
@_exported public import struct RoostAPI.ClientID
@_exported public import enum RoostAPI.JSONValue
@_exported public import enum RoostAPI.Limits
@_exported public import struct RoostAPI.MessageID
@_exported public import struct RoostAPI.Page
@_exported public import struct RoostAPI.RoostError
@_exported public import typealias RoostAPI.Seq
@_exported public import struct RoostAPI.Timestamp
@_exported public import struct RoostAPI.UserID

// Channels.
@_exported public import struct RoostAPI.Channel
@_exported public import struct RoostAPI.ChannelAttributes
@_exported public import struct RoostAPI.ChannelCounters
@_exported public import struct RoostAPI.ChannelPolicy
@_exported public import enum RoostAPI.ChannelSort
@_exported public import struct RoostAPI.ChannelType
@_exported public import struct RoostAPI.ChannelView
@_exported public import struct RoostAPI.CreateChannel
@_exported public import enum RoostAPI.HiddenFilter
@_exported public import enum RoostAPI.HiddenState
@_exported public import enum RoostAPI.MembershipFilter
@_exported public import enum RoostAPI.Permission
@_exported public import struct RoostAPI.PermissionExplanation
@_exported public import struct RoostAPI.PolicyChanges
@_exported public import enum RoostAPI.PolicyName
@_exported public import struct RoostAPI.QueryChannels
@_exported public import enum RoostAPI.SortDirection
@_exported public import enum RoostAPI.UserMatch
@_exported public import struct RoostAPI.WatchedChannel

// Members.
@_exported public import struct RoostAPI.ChannelRole
@_exported public import struct RoostAPI.Invitation
@_exported public import enum RoostAPI.InvitationState
@_exported public import struct RoostAPI.Member
@_exported public import struct RoostAPI.MemberEntry
@_exported public import enum RoostAPI.MemberFilter
@_exported public import struct RoostAPI.MemberResult
@_exported public import enum RoostAPI.MemberSort
@_exported public import struct RoostAPI.Membership
@_exported public import enum RoostAPI.MembershipState

// Messages and reading.
@_exported public import struct RoostAPI.ChannelDraft
@_exported public import enum RoostAPI.EventKind
@_exported public import struct RoostAPI.Message
@_exported public import protocol RoostAPI.MessageCarrying
@_exported public import struct RoostAPI.MessageContent
@_exported public import enum RoostAPI.MessageKind
@_exported public import enum RoostAPI.PushOption
@_exported public import enum RoostAPI.TranslationStatus
@_exported public import struct RoostAPI.Mentionee
@_exported public import struct RoostAPI.MessagePage
@_exported public import struct RoostAPI.PurgedMessage
@_exported public import struct RoostAPI.ReadPosition
@_exported public import struct RoostAPI.ReadState
@_exported public import struct RoostAPI.TotalUnread

// Users and devices.
@_exported public import struct RoostAPI.Device
@_exported public import struct RoostAPI.DeviceID
@_exported public import struct RoostAPI.Preferences
@_exported public import struct RoostAPI.SignedOutDevice
@_exported public import struct RoostAPI.SystemEvent
@_exported public import struct RoostAPI.User
@_exported public import struct RoostAPI.UserPresence
@_exported public import struct RoostAPI.UserPresences
@_exported public import struct RoostAPI.UserProfile
@_exported public import struct RoostAPI.UserSummary
