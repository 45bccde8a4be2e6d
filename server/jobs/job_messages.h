// Makes protocol messages of stored records.
#pragma once

#include "db/store/records.h"
#include "fusion/v1/optimizer.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace fusion {

v1::Job ToMessage(const JobRecord& record);
// Fills in sequence and time, too.
v1::JobEvent ToMessage(const EventRecord& record);
google::protobuf::Timestamp ToMessage(Timestamp time);

}  // namespace fusion
