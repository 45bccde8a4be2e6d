// Stored records as protocol messages.
#pragma once

#include "db/store/records.h"
#include "fusion/v1/optimizer.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace fusion {

v1::Job ToMessage(const JobRecord& record);
// With sequence and time filled in.
v1::JobEvent ToMessage(const EventRecord& record);
google::protobuf::Timestamp ToMessage(Timestamp time);

}  // namespace fusion
